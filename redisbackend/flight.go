package redisbackend

import (
	"errors"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// lingers is how long after it was sent a call is taken to be able to take effect, where Redis's clock
// does not tell because it was stepped, or another server has taken over.
const lingers = 2 * window

// flight is a call under way, or one whose outcome is not known.
type flight struct {
	desk     *desk
	items    []*item
	waiters  []*waiter
	sent     time.Time
	began    instant // when it was sent, by Redis's clock
	notAfter int64   // by Redis's clock, in milliseconds
	lost     bool    // the reply will not come
}

// spent says that the flight cannot take effect any more, or when to look again.
func (f *flight) spent(now instant) (bool, time.Duration) {
	if now.era != f.began.era {
		left := lingers - time.Since(f.sent)
		return left <= 0, left
	}
	left := time.Duration(f.notAfter-now.millis+1) * time.Millisecond
	return left <= 0, left
}

// landed takes in what became of a step.
func (d *desk) landed(f *flight, o outcome, err error) {
	if !d.lands(f, err, o.void) {
		return
	}
	for _, w := range f.waiters {
		w.offered, w.doubted = false, false
	}
	for i, it := range f.items {
		d.settle(it, o.ops[i], o.now)
	}
	for i, reply := range o.served {
		d.served(f.waiters[i], reply)
	}
	d.dismiss(f.waiters)
	if o.gone {
		d.dissolve()
	}
	d.plan(f, o)
}

// lands ends a flight. It reports false when the flight did nothing: then its requests are asked for
// again, or refused, or it is not known what became of them.
func (d *desk) lands(f *flight, err error, void bool) bool {
	d.loop.touch(d)
	if errors.Is(err, errUnknown) {
		d.lose(f)
		return false
	}
	d.flight = nil
	if err == nil && !void {
		return true
	}
	for _, w := range f.waiters {
		w.offered = false
	}
	d.dismiss(f.waiters)
	switch {
	case void:
		d.again(f.items)
	case errors.Is(err, semaphore.ErrDown):
		d.again(f.items)
		d.rest()
	default:
		d.refuse(f, err)
	}
	return false
}

// refuse tells that Redis refused a call. What is to be given back is tried again.
func (d *desk) refuse(f *flight, err error) {
	var undone []*item
	for _, it := range f.items {
		if it.undoes() {
			undone = append(undone, it)
			continue
		}
		it.answer(semaphore.Reply{Err: err})
	}
	d.plan(f, outcome{nextEnd: -1})
	if len(undone) > 0 {
		d.again(undone)
		d.rest()
	}
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

// rest has the desk wait a moment before its next call, because Redis cannot be reached.
func (d *desk) rest() {
	d.rests = true
	d.loop.alarms.put(&d.next, time.Now().Add(restFor))
}

// lose notes that the reply to a call will not come. When the call cannot take effect any more, what
// it was to do is asked for again.
func (d *desk) lose(f *flight) {
	f.lost = true
	for _, w := range f.waiters {
		if w.quits {
			w.tell(w.uncertain())
		}
	}
	d.next.ring = func() { d.recoverSpent(f) }
	d.recoverSpent(f)
}

// recoverSpent recovers a lost flight, when it cannot take effect any more.
func (d *desk) recoverSpent(f *flight) {
	spent, left := f.spent(d.loop.office.books.now(d.key))
	if !spent {
		d.loop.alarms.put(&d.next, time.Now().Add(left))
		return
	}
	d.next.ring = d.due
	d.recover(f)
}

// recover asks again for what a lost call was to do. Redis knows by the tickets what it did.
func (d *desk) recover(f *flight) {
	d.flight = nil
	for _, it := range f.items {
		it.doubtful = true
	}
	d.again(f.items)
	for _, w := range f.waiters {
		w.offered, w.doubted = false, true
	}
	d.dismiss(f.waiters)
	d.loop.touch(d)
}

// abandoned says that nobody waits for what a request may get.
func (i *item) abandoned() bool {
	if i.undoes() {
		return false
	}
	return i.answered() || i.apart() && i.waiter.leaving
}

// undo is the request that gives back what an Acquire got, if it got anything; w, if there is one, is
// told then that it got nothing.
func (d *desk) undo(a semaphore.Acquire, t semaphore.Ticket, w *waiter) *item {
	return &item{request: giveBack{key: a.Key, holder: a.Holder, ticket: t}, since: time.Now(), waiter: w}
}

// settle tells what became of a request.
func (d *desk) settle(it *item, r opResult, now int64) {
	_, isAcquire := it.request.(semaphore.Acquire)
	switch {
	case !isAcquire && it.waiter != nil:
		it.waiter.offered, it.waiter.doubted = false, false
		d.depart(it.waiter, semaphore.Reply{})
		it.reply(semaphore.Reply{Value: semaphore.Number(1)})
	case !isAcquire:
		it.answer(r.Reply)
	case r.joins:
		d.join(it, now)
	case r.Value == nil:
		it.answer(d.contradiction(it, r.Reply))
	default:
		d.grant(it, r.Reply)
	}
}

// grant tells of a grant. One that nobody waits for is given back.
func (d *desk) grant(it *item, r semaphore.Reply) {
	if g, ok := r.Value.(*semaphore.Grant); ok && it.answered() && !g.Replayed {
		d.enqueue(d.undo(it.request.(semaphore.Acquire), it.ticket, nil))
	}
	if it.waiter != nil {
		d.loop.alarms.drop(&it.waiter.end)
	}
	d.loop.office.metrics.granted(it, r)
	it.answer(r)
}

// plan decides when the next call is due that nobody asks for.
func (d *desk) plan(f *flight, o outcome) {
	head := d.line.head()
	if head == nil {
		d.urgent = d.urgent || d.listed || d.missed != tally{} || o.more
		d.offers = minCandidates
		return
	}
	offered := len(f.waiters) > 0
	served := len(o.served)
	switch {
	case served > 0 && served == len(f.waiters):
		d.offers = min(maxCandidates, 2*d.offers)
	case served > 0:
		d.offers = max(minCandidates, served)
	}
	fits := o.free >= head.acquire.Permits && (served > 0 || !offered)
	d.urgent = d.urgent || o.more || fits || !d.listed || d.missed != tally{}
	wait := pollEvery
	if o.nextEnd >= 0 {
		wait = min(wait, o.nextEnd+time.Millisecond)
	}
	d.loop.alarms.put(&d.next, time.Now().Add(wait))
}
