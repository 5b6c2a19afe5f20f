package redisbackend

import (
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

const (
	// maxOps is the most requests that share a call.
	maxOps = 50
	// maxCandidates is the most waiters that a call offers.
	maxCandidates = 50
	// minCandidates are offered by a call that nothing is known to be free for.
	minCandidates = 4
	// pollEvery is how often a desk calls at which somebody waits, for what no message tells of.
	pollEvery = 500 * time.Millisecond
	// leastWindow is how long after it was sent a call may still take effect; where replies are waited for
	// for longer, twice that.
	leastWindow = time.Second
	// restFor is how long a desk rests after a call that could not be made, brief after one that came too
	// late.
	restFor = 50 * time.Millisecond
	brief   = 2 * time.Millisecond
)

// desk is where the requests for one semaphore gather. It belongs to its loop.
type desk struct {
	loop *loop
	key  string
	busy bool // it is in loop.busy

	queue  []*item
	line   line
	flight *flight // the call under way; nil: none
	rests  bool    // a call could not be made; it tries again when next rings

	urgent   bool      // a call is due although nobody asks: the line may have something to get or to tell
	listed   bool      // the shared line may have an entry for the line here
	offers   int       // how many candidates the next call takes along
	vain     bool      // the last call handed nothing over, although it found enough
	capacity int64     // when last heard of
	hunt     *hunt     // for a permit, among clients who work by hand; nil: none
	hunted   time.Time // when the last hunt began
	since    time.Time // when the first of what is caught was
	caught   int64     // permits that hunts have brought
	missed   tally     // not yet told to Redis
	next     alarm     // the next call that nobody asks for
	watch    alarm     // the next look at those who are not decided
}

func newDesk(l *loop, key string) *desk {
	d := &desk{loop: l, key: key, offers: minCandidates}
	d.next.ring = d.due
	d.watch.ring = d.look
	return d
}

// due is called when a call is due that nobody asks for.
func (d *desk) due() {
	d.rests = false
	d.urgent = d.urgent || d.line.len() > 0
	d.loop.touch(d)
}

// wake has the desk call as soon as it can, because something may have become free.
func (d *desk) wake() {
	if d.line.len() > 0 {
		d.urgent = true
		d.loop.touch(d)
	}
}

// unused says that nothing is left to do.
func (d *desk) unused() bool {
	return len(d.queue) == 0 && d.line.len() == 0 && d.flight == nil && d.hunt == nil && !d.rests && !d.urgent
}

func (d *desk) putAway() {
	d.loop.alarms.drop(&d.next)
	d.loop.alarms.drop(&d.watch)
}

// enqueue takes a request in.
func (d *desk) enqueue(i *item) {
	d.queue = append(d.queue, i)
	if d.watch.set == 0 {
		d.loop.alarms.put(&d.watch, i.since.Add(lookEvery))
	}
}

// call makes the next call, unless one is under way.
func (d *desk) call() {
	if d.flight != nil {
		return
	}
	d.decideHere()
	switch {
	case d.rests:
	case len(d.queue) > 0 && shares(d.queue[0].request), d.urgent:
		d.serve()
	case len(d.queue) > 0:
		d.ask()
	case d.line.len() > 0 && d.next.set == 0:
		d.loop.alarms.put(&d.next, time.Now().Add(pollEvery))
	}
}

// tally counts waits that ended without a grant: Redis keeps the counters of semaphores, but does not
// see these.
type tally struct {
	timeouts int64
	waited   time.Duration
}

// serve makes a call for the next requests that share calls and the head of the line.
func (d *desk) serve() {
	f := &flight{items: d.sharing()}
	waiters, cut := d.offered(f.items)
	f.waiters = waiters
	f.caught = d.bring()
	s := d.step(f)
	d.urgent, d.listed, d.missed = cut, s.Head != 0, tally{}
	d.fly(f)
	d.loop.office.books.serve(d.key, f.stamp, s, func(o *script.Outcome, err error) {
		d.loop.post(func() { d.landed(f, o, err) })
	})
}

// step is what a call for these requests and waiters is to do.
func (d *desk) step(f *flight) *script.Step {
	s := &script.Step{
		Ops:        make([]script.Op, len(f.items)),
		Candidates: make([]script.Candidate, len(f.waiters)),
		Behind:     d.line.len() > len(f.waiters),
		Timeouts:   d.missed.timeouts,
		Waited:     d.missed.waited,
		Caught:     f.caught,
		Limits:     d.loop.office.limits,
	}
	for i, it := range f.items {
		s.Ops[i] = script.Op{Request: it.request, Ticket: it.ticket, Again: it.doubtful}
	}
	now := time.Now()
	for i, w := range f.waiters {
		w.offered = true
		s.Candidates[i] = script.Candidate{Acquire: &w.acquire, Ticket: w.ticket, Waited: now.Sub(w.arrived), Arrival: w.arrival}
	}
	if w := d.line.head(); w != nil {
		s.Head = w.arrival
	}
	return s
}

// sharing takes from the queue those who share the next call.
func (d *desk) sharing() []*item {
	n := 0
	for n < len(d.queue) && n < maxOps && shares(d.queue[n].request) {
		n++
	}
	return d.take(n)
}

func (d *desk) take(n int) []*item {
	taken := d.queue[:n:n]
	d.queue = d.queue[n:]
	if len(d.queue) == 0 {
		d.queue = nil
	}
	return taken
}

// offered is the part of the line that the next call takes along. It is cut before a waiter for whose
// holder there is a request in the same call: what became of that has to be known first.
func (d *desk) offered(items []*item) (waiters []*waiter, cut bool) {
	if d.line.len() == 0 {
		return nil, false
	}
	asking := make(map[string]bool, len(items))
	for _, it := range items {
		if a, ok := it.request.(semaphore.Acquire); ok {
			asking[a.Holder] = true
		}
	}
	waiters = d.line.first(min(maxCandidates, max(d.offers, len(items))))
	for i, w := range waiters {
		if asking[w.acquire.Holder] {
			return waiters[:i], true
		}
	}
	return waiters, false
}

// ask sends the next request, which has a call of its own.
func (d *desk) ask() {
	f := &flight{items: d.take(1)}
	d.fly(f)
	it := f.items[0]
	request := it.request
	if r, ok := request.(semaphore.Waiters); ok {
		request = semaphore.Inspect{Key: r.Key} // whether there is such a semaphore
	}
	d.loop.office.books.ask(request, f.stamp, it.ticket, func(a *script.Answer, err error) {
		d.loop.post(func() { d.replied(f, a, err) })
	})
}

// fly notes that a call is under way.
func (d *desk) fly(f *flight) {
	f.sent = time.Now()
	f.stamp = d.loop.office.stamp(d.key)
	d.flight = f
	d.loop.alarms.drop(&d.next)
}
