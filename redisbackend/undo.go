package redisbackend

import (
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// undoFor is how long it is tried to give back what somebody may have got. The lease of a grant that
// Redis does not let us give back ends it.
const undoFor = time.Minute

// undo is the request that gives back what an Acquire got, if it got anything; w, if there is one, is
// told then that it got nothing.
func (d *desk) undo(a semaphore.Acquire, t semaphore.Ticket, w *waiter) *item {
	d.loop.office.metrics.givenBack.Inc()
	return &item{request: script.GiveBack{Key: a.Key, Holder: a.Holder, Ticket: t}, since: time.Now(), waiter: w}
}

// retract gives a grant back that too few replicas know of, and tells then that nothing was granted, or
// that this is not certain.
func (d *desk) retract(a semaphore.Acquire, t semaphore.Ticket, tell func(semaphore.Reply)) {
	it := d.undo(a, t, nil)
	it.then = func(weak bool) {
		if weak {
			tell(it.uncertain())
			return
		}
		tell(semaphore.Reply{Err: semaphore.Errorf(semaphore.CodeDown, "too few replicas have acknowledged in time; nothing was granted")})
	}
	d.enqueue(it)
}

// undone goes on behind a request that gave back what somebody got, or found that it got nothing.
func (d *desk) undone(f *flight, it *item) {
	if w := it.waiter; w != nil {
		w.offered, w.doubted = false, false
		d.depart(w, semaphore.Reply{})
	}
	it.happened(f.weak)
}

// lookAtUndo tells whoever waits for the outcome that it is not known in time, and reports whether it is
// tried no longer.
func (d *desk) lookAtUndo(it *item, age time.Duration) bool {
	if age >= d.loop.office.hold {
		it.happened(true)
	}
	if age < undoFor {
		return false
	}
	if w := it.waiter; w != nil {
		w.offered, w.doubted = false, false
		w.tell(w.uncertain())
		d.depart(w, semaphore.Reply{})
	}
	return true
}

// happened goes on with what waits for a request that undoes, once. Weak: too few replicas have it, or it
// is not known.
func (i *item) happened(weak bool) {
	if then := i.then; then != nil {
		i.then = nil
		then(weak)
	}
}

// withhold has a waiter leave the line: when it may have got something, by giving that back first.
func (d *desk) withhold(w *waiter) *item {
	if !w.doubted {
		d.depart(w, semaphore.Reply{})
		return nil
	}
	w.leaving, w.offered = true, true
	it := d.undo(w.acquire, w.ticket, w)
	d.queue = append([]*item{it}, d.queue...)
	d.loop.touch(d)
	return it
}
