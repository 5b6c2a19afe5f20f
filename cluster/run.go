package cluster

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// run is what one call of Do asked for: requests that are proposed together, in one entry.
type run struct {
	requests []semaphore.Request
	encoded  []byte
	replies  []semaphore.Reply
	arrived  time.Duration
	settled  chan struct{} // receives once, when state leaves pending
	state    atomic.Int32
	failure  outcome             // set before state becomes abandoned
	kept     []semaphore.Request // likewise: what the clean-up has to know
	proposed bool                // guarded by the queue's lock
	again    *wait               // whose place in line this run asks for once more; nil: it is an ordinary one
}

// The states of a run. It leaves pending once: it is answered when its flight has left the queue, and
// abandoned only while the queue has it.
const (
	pending   int32 = iota
	answered        // replies are complete, and the caller has them
	abandoned       // the caller was told an error; the outcome, when it comes, has to be cleaned up
	internal        // nobody waits: requests that the node makes itself
)

func emptyRun() *run { return &run{settled: make(chan struct{}, 1)} }

func newRun(requests []semaphore.Request, now time.Duration) *run {
	r := emptyRun()
	r.begin(requests, now)
	return r
}

// repeated is a run of the node's own that asks for the same once more.
func repeated(r *run, now time.Duration) *run {
	again := newRun(r.requests, now)
	again.state.Store(internal)
	return again
}

// begin makes the run carry requests, whatever it carried before.
func (r *run) begin(requests []semaphore.Request, now time.Duration) {
	r.requests, r.arrived, r.proposed = requests, now, false
	r.state.Store(pending)
	r.encode(now)
}

// encode writes the requests for the log. What is left of a wait is what counts, so a run that has
// to be proposed again is encoded again.
func (r *run) encode(now time.Duration) {
	waited := now - r.arrived
	r.encoded = r.encoded[:0]
	for _, request := range r.requests {
		if waited > 0 {
			request = waitedFor(request, waited)
		}
		r.encoded = fsm.AppendRequest(r.encoded, request)
	}
}

// waitedFor is the request with that much of its WAIT gone.
func waitedFor(request semaphore.Request, waited time.Duration) semaphore.Request {
	switch r := request.(type) {
	case semaphore.Acquire:
		r.Wait = max(0, r.Wait-waited)
		return r
	case fsm.Rejoin:
		r.Wait = max(time.Millisecond, r.Wait-waited) // whoever waits does so until the log ends it
		return r
	}
	return request
}

// settle moves the run out of pending and wakes its caller, who may use its slice of requests again.
func (r *run) settle(state int32) {
	r.state.Store(state)
	r.settled <- struct{}{}
}

// deadline returns when the caller has to be told something. What may stand in line is due when its
// WAIT has passed; all else, and so a run that has something else in it, when the hold has.
func (r *run) deadline(hold time.Duration) time.Duration {
	last, ok := r.requests[len(r.requests)-1].(semaphore.Acquire)
	if !ok || last.Wait == 0 {
		return r.arrived + hold
	}
	waited := last.Wait + uncertainAfter
	if !r.proposed || len(r.requests) > 1 {
		waited = min(hold, waited)
	}
	return r.arrived + waited
}

// abandon tells the caller that the run could not be decided. Must be called under the queue's lock.
func (r *run) abandon(why outcome) {
	if r.state.Load() != pending {
		return
	}
	r.kept = slices.Clone(r.requests) // the caller's slice is the caller's again
	r.failure = why
	r.settle(abandoned)
}

// failures answers requests that could not be decided.
func failures(requests []semaphore.Request, why outcome) []semaphore.Reply {
	replies := make([]semaphore.Reply, len(requests))
	for i, request := range requests {
		replies[i] = semaphore.Reply{Err: why.err(request)}
	}
	return replies
}

// outcome says what is known of requests that could not be decided in time.
type outcome int

const (
	notApplied outcome = iota // certainly
	unknown
	stopped // certainly not applied, because the node stops
)

func (o outcome) err(request semaphore.Request) error {
	switch o {
	case notApplied:
		return semaphore.ErrDown
	case stopped:
		return semaphore.ErrShutdown
	}
	switch r := request.(type) {
	case semaphore.Acquire:
		return semaphore.Uncertain(r.Holder)
	case semaphore.Release:
		return semaphore.Uncertain(r.Holder)
	case semaphore.Renew:
		return semaphore.Uncertain(r.Holder)
	case semaphore.Cancel:
		return semaphore.Uncertain(r.Holder)
	}
	return semaphore.Errorf(semaphore.CodeUncertain, "the outcome is not known; ask for the state of %q before you go on", request.Semaphore())
}
