package redisbackend

import (
	"errors"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// books is what Redis keeps, as a desk uses it: one step at a time. An error says what became of the
// step as a whole: a *semaphore.Error means that it certainly did nothing; errUnknown, that it may
// have taken effect, or may still do so, until a step with a later stamp has.
type books interface {
	// serve sends a step for the requests that share calls. It does not block; done is called once,
	// from any goroutine, never before serve returns.
	serve(key string, s *step, done func(outcome, error))
	// ask sends a step for any other request, in the same way.
	ask(key string, a *question, done func(answer, error))
	// now estimates the clock of the server that has a semaphore, in milliseconds since 1970. It is never
	// ahead of it.
	now(key string) int64
}

var errUnknown = errors.New("the outcome of a call to Redis is not known")

// step is what one call does for requests that share calls. The candidates come before the ops: what
// is free, and what an op frees, goes to them in their order, up to the first for whom it does not
// suffice; while one of them is left, no op is granted what its holder does not hold already.
type step struct {
	stamp      script.Stamp
	ops        []op
	candidates []candidate
	behind     bool  // others wait here behind the candidates: they too come before the ops
	head       int64 // when the head of the line here joined, by Redis's clock; 0: nobody waits here
	waiting    int   // how many wait here
	missed     tally
}

// tally counts waits that ended without a grant: Redis keeps the counters of semaphores, but does not
// see these.
type tally struct {
	timeouts int64
	waited   time.Duration
}

// op is one request that shares calls, under the ticket by which Redis knows it again. The request is an
// Acquire, Release, Renew, Check or script.GiveBack.
type op struct {
	request semaphore.Request
	ticket  semaphore.Ticket
}

// candidate is a waiter to whom permits may be handed over.
type candidate struct {
	acquire *semaphore.Acquire
	ticket  semaphore.Ticket
	waited  time.Duration
}

// outcome is what became of a step.
type outcome struct {
	void    bool              // it came too late: nothing was done
	now     int64             // Redis's clock, in milliseconds
	ops     []opResult        // one for each op
	served  []semaphore.Reply // for the first candidates: a *semaphore.Grant, or an error
	nextEnd time.Duration     // until the next lease ends; negative: none will
	free    int64             // permits that this server's line may have now
	more    bool              // there is more to be done at once, beyond what one call does
	gone    bool              // there is no such semaphore
}

// opResult is the reply to one op; joins says that it got nothing and may stand in line.
type opResult struct {
	semaphore.Reply
	joins bool
}

// question is a request that has a call of its own: Create, Resize, Reconcile, Delete, Inspect or
// Holders.
type question struct {
	request semaphore.Request
	ticket  semaphore.Ticket
	stamp   script.Stamp
}

// answer is what became of a question.
type answer struct {
	semaphore.Reply
	void bool // it came too late: nothing was done
}
