package redisbackend

import (
	"time"

	"github.com/semserver/semserver/redisbackend/script"
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
		undo.since = it.since
		undo.then = func(weak bool) {
			if weak {
				it.answer(it.uncertain())
			}
			it.answer(semaphore.Reply{Value: semaphore.Number(1)})
		}
		return
	}
	it.answer(semaphore.Reply{Value: semaphore.Number(1)})
}

// replied takes in the answer to a request that had a call of its own.
func (d *desk) replied(f *flight, a *script.Answer, err error) {
	if !d.lands(f, err) {
		return
	}
	it := f.items[0]
	d.loop.office.metrics.replied(it.request, a.Reply)
	d.urgent = d.urgent || d.line.len() > 0
	reply := a.Reply
	switch r := it.request.(type) {
	case semaphore.Delete:
		if a.Err == nil {
			d.dissolve()
		}
	case semaphore.Resize:
		if a.Err == nil {
			d.resized(r.Capacity)
			if d.serveFirst(it) {
				return
			}
		}
	case semaphore.Reconcile:
		if reply = d.reconciled(it, a); reply.Value == nil && reply.Err == nil {
			return
		}
	case semaphore.Inspect:
		if i, ok := a.Value.(*semaphore.Info); ok {
			d.addLine(i)
		}
	case semaphore.Waiters:
		if a.Err == nil {
			reply.Value = d.line.page(r.Cursor, r.Count, time.Now())
		}
	}
	if f.weak && changes(it.request) {
		reply = it.uncertain()
	}
	it.answer(reply)
}

// serveFirst has the line served before a Resize that took effect is answered: it tells what is in use
// after that. It reports false when that has been done.
func (d *desk) serveFirst(it *item) bool {
	if d.line.len() == 0 || it.served {
		return false
	}
	it.served = true
	d.again([]*item{it}) // which changes nothing any more
	return true
}

// changes says whether a request with a call of its own can change anything.
func changes(r semaphore.Request) bool {
	switch r.(type) {
	case semaphore.Create, semaphore.Resize, semaphore.Delete, semaphore.Reconcile:
		return true
	}
	return false
}

// reconciled adds up what the calls of one Reconcile have put back; an empty reply: another call
// follows.
func (d *desk) reconciled(it *item, a *script.Answer) semaphore.Reply {
	n, ok := a.Value.(semaphore.Number)
	if !ok {
		return a.Reply
	}
	it.sum += n
	if !a.More || time.Since(it.since) > d.loop.office.hold/2 {
		return semaphore.Reply{Value: it.sum}
	}
	it.ticket = d.loop.office.ticket()
	d.again([]*item{it})
	return semaphore.Reply{}
}

// addLine adds what only this server knows: its line.
func (d *desk) addLine(i *semaphore.Info) {
	i.Waiters = int64(d.line.len())
	if w := d.line.head(); w != nil {
		i.OldestWait = time.Since(w.arrived)
	}
}
