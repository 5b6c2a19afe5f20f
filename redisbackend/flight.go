package redisbackend

import (
	"errors"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// flight is a call under way.
type flight struct {
	stamp   script.Stamp
	items   []*item
	waiters []*waiter
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

// lose has a call asked for again whose reply will not come. Redis knows by the tickets what it did,
// and by the serial number of the next call that it is not to be carried out any more, should it still
// arrive.
func (d *desk) lose(f *flight) {
	d.flight = nil
	for _, it := range f.items {
		it.doubtful = true
	}
	d.again(f.items)
	for _, w := range f.waiters {
		w.offered, w.doubted = false, true
		if w.quits {
			w.tell(w.uncertain())
		}
	}
	d.dismiss(f.waiters)
	d.rest()
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
	return &item{request: script.GiveBack{Key: a.Key, Holder: a.Holder, Ticket: t}, since: time.Now(), waiter: w}
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
