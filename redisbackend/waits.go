package redisbackend

import (
	"slices"
	"time"

	"github.com/semserver/semserver/semaphore"
)

const (
	// lookEvery is how often a desk looks at requests that are not decided.
	lookEvery = 100 * time.Millisecond
	// partAfter is how long Do waits for the decision on an Acquire that has a WAIT.
	partAfter = 200 * time.Millisecond
	// uncertainAfter is how long after its WAIT a request is answered at the latest.
	uncertainAfter = 900 * time.Millisecond
)

func newWaiter(a semaphore.Acquire, t semaphore.Ticket, now time.Time) *waiter {
	return &waiter{acquire: a, ticket: t, arrived: now, ends: now.Add(a.Wait), done: make(chan semaphore.Reply, 1)}
}

// waiting is what the client of a waiter gets in place of a reply.
func (d *desk) waiting(w *waiter) *semaphore.Waiting {
	l := d.loop
	part := func(quits bool) func() {
		return func() {
			l.post(func() { l.desk(d.key).part(w, quits) })
		}
	}
	return &semaphore.Waiting{Done: w.done, Leave: part(false), Quit: part(true)}
}

// join puts a request in line that got nothing so far.
func (d *desk) join(it *item, now int64) {
	w := it.waiter
	if w == nil || w.leaving || w.told {
		it.answer(semaphore.Reply{})
		return
	}
	a := it.request.(semaphore.Acquire)
	older := d.line.find(a.Holder)
	switch {
	case older != nil && older.acquire.Permits != a.Permits:
		it.answer(d.contradiction(it, semaphore.Reply{}))
		return
	case older != nil:
		d.line.takeOver(older, w)
		d.ends(older, semaphore.Reply{Err: semaphore.ErrSuperseded})
	default:
		if err := d.loop.office.enter(d.line.len()); err != nil {
			it.answer(semaphore.Reply{Err: err})
			return
		}
		w.arrival = now
		d.listed = true // the call in which it joined has said so
		d.line.join(w)
		if d.line.len() == 1 {
			d.loop.office.books.listen(d.key)
		}
	}
	if !it.apart() {
		it.part(d.waiting(w))
	}
	d.alarm(w)
}

// alarm has the wait end when its WAIT has passed.
func (d *desk) alarm(w *waiter) {
	w.end.ring = func() { d.loop.desk(d.key).expire(w) }
	d.loop.alarms.put(&w.end, w.ends)
}

// contradiction is the reply to an Acquire that got nothing while its holder stands in line: for
// other permits, that is a conflict.
func (d *desk) contradiction(it *item, r semaphore.Reply) semaphore.Reply {
	a := it.request.(semaphore.Acquire)
	w := d.line.find(a.Holder)
	if w == nil || w.acquire.Permits == a.Permits {
		return r
	}
	return semaphore.Reply{Err: semaphore.Errorf(semaphore.CodeConflict,
		"this holder stands in line for %d permits; it cannot ask for %d beside them", w.acquire.Permits, a.Permits)}
}

// served tells a waiter what a call handed over to it.
func (d *desk) served(f *flight, w *waiter, r semaphore.Reply) {
	d.leaves(w)
	if g, ok := r.Value.(*semaphore.Grant); ok && !g.Replayed && f.weak {
		d.retract(w.acquire, w.ticket, func(r semaphore.Reply) { d.ends(w, r) })
		return
	} else if ok && !g.Replayed && w.told {
		d.enqueue(d.undo(w.acquire, w.ticket, nil))
	}
	d.loop.office.metrics.replied(w.acquire, r)
	d.ends(w, r)
}

// leaves takes a waiter out of the line, if it stands there. Those behind it may fit now.
func (d *desk) leaves(w *waiter) {
	if w.place == 0 {
		return
	}
	d.line.leave(w)
	d.loop.office.waiters.Add(-1)
	if d.line.len() == 0 {
		d.loop.office.books.ignore(d.key)
	}
}

// ends tells a waiter that is not in line any more how its wait ended.
func (d *desk) ends(w *waiter, r semaphore.Reply) {
	d.loop.alarms.drop(&w.end)
	w.tell(r)
}

// part has a waiter leave at its client's wish, or because the server stops.
func (d *desk) part(w *waiter, quits bool) {
	w.quits = w.quits || quits
	d.giveUp(w, semaphore.Reply{})
	if quits && w.doubted {
		w.tell(w.uncertain())
	}
}

// expire ends a wait whose WAIT has passed; when that cannot be decided yet, at the latest
// uncertainAfter.
func (d *desk) expire(w *waiter) {
	if w.told {
		return
	}
	if !w.leaving {
		d.giveUp(w, semaphore.Reply{Err: errAway})
	}
	switch {
	case w.told:
	case time.Now().Before(w.ends.Add(uncertainAfter)):
		d.loop.alarms.put(&w.end, w.ends.Add(uncertainAfter))
	default:
		d.loop.office.metrics.uncertain.Inc()
		w.tell(w.uncertain())
	}
}

// giveUp has a waiter leave: at once, unless a call may get it what it waits for. The reply is for a
// request that has not come as far as the line.
func (d *desk) giveUp(w *waiter, unsent semaphore.Reply) {
	w.leaving = true
	switch {
	case w.told, w.offered:
	case w.place != 0:
		d.withhold(w)
	default:
		d.withdraw(w, unsent)
	}
}

// withdraw takes a request out of the queue.
func (d *desk) withdraw(w *waiter, r semaphore.Reply) {
	for n, it := range d.queue {
		a, isAcquire := it.request.(semaphore.Acquire)
		if it.waiter != w || !isAcquire {
			continue
		}
		if it.doubtful {
			d.queue[n] = d.undo(a, it.ticket, w)
			return
		}
		d.queue = append(d.queue[:n:n], d.queue[n+1:]...)
		d.ends(w, r)
		return
	}
}

// look sees after requests that are not decided: Do returns for those that may wait, and ends for those
// that are held no longer.
func (d *desk) look() {
	now := time.Now()
	if f := d.flight; f != nil {
		for _, it := range f.items {
			d.lookAt(it, now)
		}
	}
	var kept []*item
	for _, it := range d.queue {
		if !d.lookAt(it, now) {
			kept = append(kept, it)
			continue
		}
		if a, ok := it.request.(semaphore.Acquire); ok && it.doubtful {
			kept = append(kept, d.undo(a, it.ticket, nil))
		}
	}
	d.queue = kept
	if d.flight != nil || len(d.queue) > 0 {
		d.loop.alarms.put(&d.watch, now.Add(lookEvery))
	}
	d.loop.touch(d)
}

// lookAt reports whether the request is held no longer, and whoever asked has been told so.
func (d *desk) lookAt(it *item, now time.Time) bool {
	age := now.Sub(it.since)
	switch {
	case it.undoes():
		return d.lookAtUndo(it, age)
	case it.answered():
	case it.waiter != nil:
		if !it.waiter.apart && age >= partAfter {
			it.part(d.waiting(it.waiter))
			d.alarm(it.waiter)
		}
	case age >= d.loop.office.hold:
		it.answer(d.undecided(it))
		return true
	}
	return false
}

// undecided is the reply to a request that is held no longer.
func (d *desk) undecided(it *item) semaphore.Reply {
	if f := d.flight; it.doubtful || f != nil && slices.Contains(f.items, it) {
		d.loop.office.metrics.uncertain.Inc()
		return it.uncertain()
	}
	return semaphore.Reply{Err: errAway}
}

// dismiss ends the waits of those who are leaving and got nothing.
func (d *desk) dismiss(waiters []*waiter) {
	for _, w := range waiters {
		if w.leaving && w.place != 0 {
			d.withhold(w)
		}
	}
}

// depart ends a wait that brought nothing.
func (d *desk) depart(w *waiter, r semaphore.Reply) {
	if w.place != 0 {
		d.leaves(w)
		d.missed.timeouts++
		d.loop.office.metrics.timedOut.Inc()
		d.missed.waited += time.Since(w.arrived)
		d.urgent = true
		d.loop.touch(d)
	}
	d.ends(w, r)
}

// resized takes in how large the semaphore is. Who wants more than there will be is told so, wherever
// he stands. Capacity 0 is a pause.
func (d *desk) resized(capacity int64) {
	if capacity == d.capacity || capacity == 0 {
		return
	}
	d.capacity = capacity
	for _, w := range d.line.first(d.line.len()) {
		if w.acquire.Permits <= capacity || w.doubted {
			continue
		}
		d.leaves(w)
		d.ends(w, semaphore.Reply{Err: semaphore.Errorf(semaphore.CodeTooMany,
			"%d permits asked for, and the capacity is %d", w.acquire.Permits, capacity)})
	}
}

// dissolve ends all waits, because there is no such semaphore.
func (d *desk) dissolve() {
	for w := d.line.head(); w != nil; w = d.line.head() {
		d.leaves(w)
		d.ends(w, semaphore.Reply{Err: semaphore.ErrNoSemaphore})
	}
}

func (w *waiter) uncertain() semaphore.Reply {
	return semaphore.Reply{Err: semaphore.Uncertain(w.acquire.Holder)}
}
