package redisbackend

import (
	"errors"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// flight is a call under way.
type flight struct {
	stamp   script.Stamp
	sent    time.Time
	items   []*item
	waiters []*waiter
	caught  int64 // permits that it takes along
	weak    bool  // it took effect, and too few replicas have it
}

// landed takes in what became of a step.
func (d *desk) landed(f *flight, o *script.Outcome, err error) {
	if !d.lands(f, err) {
		return
	}
	d.loop.office.saw(o.Token)
	d.loop.office.metrics.expired.Add(float64(o.Ended))
	for _, w := range f.waiters {
		w.offered, w.doubted = false, false
	}
	for i, it := range f.items {
		d.settle(f, it, o.Ops[i], o.Now)
	}
	for i, reply := range o.Served {
		d.served(f, f.waiters[i], reply)
	}
	d.dismiss(f.waiters)
	if o.Gone {
		d.dissolve()
	} else {
		d.resized(o.Capacity)
	}
	d.plan(f, o)
}

// lands ends a flight. It reports false when the flight did nothing, or nobody knows: then its
// requests are asked for again, or refused.
func (d *desk) lands(f *flight, err error) bool {
	d.loop.touch(d)
	d.flight = nil
	f.weak = errors.Is(err, link.ErrUnreplicated)
	if err == nil || f.weak {
		d.loop.office.metrics.landed(f)
		return true
	}
	for _, w := range f.waiters {
		w.offered = false
	}
	var refusal *semaphore.Error
	switch {
	case errors.Is(err, script.ErrVoid):
		d.loop.office.metrics.repeated.WithLabelValues("late").Inc()
		d.repeat(f)
		d.rest(brief)
	case errors.Is(err, semaphore.ErrDown):
		d.loop.office.metrics.repeated.WithLabelValues("down").Inc()
		d.repeat(f)
		d.rest(restFor)
	case errors.As(err, &refusal):
		d.refuse(f, refusal)
	default:
		d.lose(f)
	}
	return false
}

// repeat has everything asked for again that a call was to do.
func (d *desk) repeat(f *flight) {
	d.caught += f.caught // never more than what the books lack is put back
	d.again(f.items)
	d.dismiss(f.waiters)
}

// again puts requests back at the head of the queue. Those who do not wait for them any more get
// nothing: what they may have got is given back.
func (d *desk) again(items []*item) {
	var kept []*item
	for _, it := range items {
		a, isAcquire := it.request.(semaphore.Acquire)
		switch {
		case !it.abandoned():
			kept = append(kept, it)
		case isAcquire && it.doubtful:
			kept = append(kept, d.undo(a, it.ticket, it.waiter))
		case it.waiter != nil:
			d.ends(it.waiter, semaphore.Reply{})
		}
	}
	d.queue = append(kept, d.queue...)
	d.urgent = d.urgent || d.line.len() > 0
}

// rest has the desk wait a moment before its next call, which would fare as the last one did.
func (d *desk) rest(moment time.Duration) {
	d.rests = true
	d.loop.alarms.put(&d.next, time.Now().Add(moment))
}

// refuse tells that Redis refused a call. What is to be given back is tried again.
func (d *desk) refuse(f *flight, err *semaphore.Error) {
	var undone []*item
	for _, it := range f.items {
		if it.undoes() {
			undone = append(undone, it)
			continue
		}
		it.answer(semaphore.Reply{Err: err})
	}
	d.caught += f.caught
	d.dismiss(f.waiters)
	d.plan(f, &script.Outcome{NextEnd: -1})
	if len(undone) > 0 {
		d.again(undone)
		d.rest(restFor)
	}
}

// lose has a call asked for again whose reply will not come. Redis knows by the tickets what it did,
// and by the serial number of the next call that it is not to be carried out any more, should it still
// arrive.
func (d *desk) lose(f *flight) {
	d.loop.office.metrics.repeated.WithLabelValues("unknown").Inc()
	for _, it := range f.items {
		it.doubtful = true
	}
	for _, w := range f.waiters {
		w.doubted = true
		if w.quits {
			w.tell(w.uncertain())
		}
	}
	d.repeat(f)
	d.rest(restFor)
}

// settle tells what became of a request.
func (d *desk) settle(f *flight, it *item, r script.Result, now int64) {
	d.loop.office.metrics.replied(it.request, r.Reply)
	_, isAcquire := it.request.(semaphore.Acquire)
	switch {
	case it.undoes():
		d.undone(f, it)
	case r.Joins:
		d.join(it, now)
	case isAcquire && r.Value == nil:
		it.answer(d.contradiction(it, r.Reply))
	case isAcquire:
		d.grant(f, it, r.Reply)
	case f.weak:
		it.answer(it.uncertain())
	default:
		it.answer(r.Reply)
	}
}

// grant tells of a grant. One that nobody waits for is given back.
func (d *desk) grant(f *flight, it *item, r semaphore.Reply) {
	g := r.Value.(*semaphore.Grant)
	a := it.request.(semaphore.Acquire)
	switch {
	case f.weak && !g.Replayed:
		d.retract(a, it.ticket, it.answer)
		return
	case it.answered() && !g.Replayed:
		d.enqueue(d.undo(a, it.ticket, nil))
	}
	if w := it.waiter; w != nil {
		d.loop.alarms.drop(&w.end)
	}
	it.answer(r)
}

// plan decides when the next call is due that nobody asks for.
func (d *desk) plan(f *flight, o *script.Outcome) {
	d.huntIf(o.Raw)
	head := d.line.head()
	if head == nil {
		d.urgent = d.urgent || d.listed || d.caught > 0 || d.missed != tally{} || o.More
		d.offers, d.vain = minCandidates, false
		return
	}
	offered, served := len(f.waiters), len(o.Served)
	switch {
	case served > 0 && served == offered:
		d.offers = min(maxCandidates, 2*d.offers)
	case served > 0:
		d.offers = max(minCandidates, served)
	}
	// What is free and yet was not handed over was left to clients who work by hand. If none took it, the
	// next call gets it; but something else may be in the way of that, so there is one such call.
	vain := offered > 0 && served == 0
	fits := o.Free >= head.acquire.Permits && (!vain || !d.vain)
	d.vain = vain && fits
	d.urgent = d.urgent || o.More || fits || !d.listed || d.missed != tally{}
	wait := pollEvery
	if o.NextEnd >= 0 {
		wait = min(wait, o.NextEnd+time.Millisecond)
	}
	d.loop.alarms.put(&d.next, time.Now().Add(wait))
}
