package redisbackend

import (
	"sync/atomic"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// office is what all desks share.
type office struct {
	books   books
	limits  semaphore.Limits
	hold    time.Duration
	window  time.Duration // how long after it was sent a call may still take effect
	metrics *Metrics
	waiters atomic.Int64 // in all lines
	hunting hunting

	incarnation uint64
	tickets     atomic.Uint64
	serials     atomic.Uint64
	floor       atomic.Int64 // the highest token seen
}

// stamp is for the next call about a semaphore.
func (o *office) stamp(key string) script.Stamp {
	return script.Stamp{
		NotAfter: o.books.now(key) + o.window.Milliseconds(),
		Server:   o.incarnation,
		Serial:   o.serials.Add(1),
		Floor:    o.floor.Load(),
	}
}

// saw notes a token: later ones are higher, whatever Redis has forgotten.
func (o *office) saw(token int64) {
	for {
		old := o.floor.Load()
		if token <= old || o.floor.CompareAndSwap(old, token) {
			return
		}
	}
}

// ticket names the next request.
func (o *office) ticket() semaphore.Ticket {
	return semaphore.Ticket{Incarnation: o.incarnation, Number: o.tickets.Add(1)}
}

// enter counts one more waiter, or says why nobody more can stand in a line of this length.
func (o *office) enter(length int) error {
	if length >= o.limits.MaxWaiters {
		return semaphore.Errorf(semaphore.CodeQueueFull, "this line is as long as --max-waiters allows: %d", o.limits.MaxWaiters)
	}
	if o.waiters.Add(1) > int64(o.limits.MaxWaitersAll) {
		o.waiters.Add(-1)
		return semaphore.Errorf(semaphore.CodeQueueFull, "all lines together are as long as they may be: %d", o.limits.MaxWaitersAll)
	}
	return nil
}
