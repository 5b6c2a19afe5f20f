package redisbackend

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// decideHere decides the requests at the head of the queue for which Redis is not needed.
func (d *desk) decideHere() {
	for len(d.queue) > 0 {
		it := d.queue[0]
		switch r := it.request.(type) {
		case semaphore.Cancel:
			d.take(1)
			d.cancel(it, r.Holder)
			continue
		case semaphore.Waiters:
			if d.line.len() == 0 {
				return
			}
			it.answer(semaphore.Reply{Value: d.line.page(r.Cursor, r.Count, time.Now())})
		default:
			return
		}
		d.take(1)
	}
}

// cancel has whoever waits under a holder's id leave.
func (d *desk) cancel(it *item, holder string) {
	w := d.line.find(holder)
	if w == nil || w.leaving {
		it.answer(semaphore.Reply{Value: semaphore.Number(0)})
		return
	}
	if undo := d.withhold(w); undo != nil {
		undo.errand, undo.index, undo.since = it.errand, it.index, it.since
		return
	}
	it.answer(semaphore.Reply{Value: semaphore.Number(1)})
}

// replied takes in the answer to a request that had a call of its own.
func (d *desk) replied(f *flight, a answer, err error) {
	if !d.lands(f, err, a.void) {
		return
	}
	it := f.items[0]
	switch r := it.request.(type) {
	case semaphore.Delete:
		if a.Err == nil {
			d.dissolve()
		}
	case semaphore.Inspect:
		if i, ok := a.Value.(*semaphore.Info); ok {
			d.addLine(i)
		}
	case semaphore.Waiters:
		if a.Err == nil {
			a.Value = d.line.page(r.Cursor, r.Count, time.Now())
		}
	}
	d.urgent = d.urgent || d.line.len() > 0
	it.answer(a.Reply)
}

// addLine adds what only this server knows: its line.
func (d *desk) addLine(i *semaphore.Info) {
	i.Waiters = int64(d.line.len())
	if w := d.line.head(); w != nil {
		i.OldestWait = time.Since(w.arrived)
	}
}
