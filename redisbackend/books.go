package redisbackend

import (
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// errAway answers what could not be asked of Redis in time.
var errAway = &semaphore.Error{Code: semaphore.CodeDown, Message: "Redis cannot be reached; the request was not applied"}

// books is what Redis keeps, as a desk uses it: one call at a time. The error of a call says what
// became of it as a whole:
//   - [script.ErrVoid]: it came too late and did nothing.
//   - a *semaphore.Error: it certainly did nothing; by [semaphore.ErrDown], it may be made again.
//   - [link.ErrUnknown]: it may have taken effect, or may still do so, until a call with a later stamp
//     has.
//   - [link.ErrUnreplicated], beside a result: it took effect, but may yet be lost.
//
// No method blocks. A done is called once, from any goroutine, and never before the method returns.
type books interface {
	// serve makes a call for the requests that share calls.
	serve(key string, stamp script.Stamp, s *script.Step, done func(*script.Outcome, error))
	// ask makes a call for any other request.
	ask(r semaphore.Request, stamp script.Stamp, t semaphore.Ticket, done func(*script.Answer, error))
	// now estimates the clock of the server that has a semaphore, in milliseconds since 1970. It is never
	// ahead of it.
	now(key string) int64
	// listen has messages about a semaphore heard, until ignore. It may be called again and again.
	listen(key string)
	ignore(key string)
}
