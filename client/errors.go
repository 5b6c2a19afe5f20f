package client

import (
	"errors"
	"fmt"

	"github.com/semserver/semserver/semaphore"
)

// Error is what a server answered in place of doing what it was asked. errors.Is compares the code.
type Error = semaphore.Error

// What Acquire and Do can end with, besides the end of their context.
var (
	// ErrNoPermit says that there was none in time.
	ErrNoPermit = errors.New("no permit in time")
	// ErrUnavailable says that no server could be reached, or none that could decide.
	ErrUnavailable = errors.New("no semaphore server can be reached")
	// ErrInvalid says that the request contradicts itself, or no server would take it: nothing was sent.
	ErrInvalid = errors.New("no such request can be made")
	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("the semaphore client is closed")

	ErrNoSemaphore = semaphore.ErrNoSemaphore                                                            // no such semaphore, and no Capacity to make it with
	ErrConflict    = &Error{Code: semaphore.CodeConflict, Message: "contradicts what is held or stored"} // the holder has another number of permits
	ErrTooMany     = &Error{Code: semaphore.CodeTooMany, Message: "more permits than the capacity"}      // it could never be granted
	ErrQueueFull   = semaphore.ErrQueueFull                                                              // the line is as long as the server allows
	ErrSuperseded  = semaphore.ErrSuperseded                                                             // another request of the same holder took over the place
	ErrUnblocked   = semaphore.ErrUnblocked                                                              // an operator ended the wait
)

// Why a permit is no longer held. Each is found by errors.Is in the cause of the permit's context.
var (
	// ErrReleased is the end that Release makes, and Detach.
	ErrReleased = errors.New("the permit was given back")
	// ErrNotHeld says that the server does not know the grant any more: somebody released it, the
	// semaphore was deleted, or a newer process took it over with Fresh.
	ErrNotHeld = errors.New("the server says that it is not held any more")
	// ErrNotRenewed says that the lease could not be renewed before it ended.
	ErrNotRenewed = errors.New("its lease could not be renewed in time")
	// ErrMaxHold says that the semaphore allows no longer lease: the grant is as old as MAXHOLD.
	ErrMaxHold = errors.New("it was held for as long as the semaphore allows (MAXHOLD)")
)

// LostError says that a permit ended before it was released.
type LostError struct {
	Name   string // the semaphore
	Holder string
	Token  int64
	Reason error // ErrNotHeld, ErrNotRenewed (with the last failure) or ErrMaxHold
}

// Error names the semaphore and the reason.
func (e *LostError) Error() string {
	return fmt.Sprintf("the permit of %q is lost: %v", e.Name, e.Reason)
}

// Unwrap returns the reason.
func (e *LostError) Unwrap() error { return e.Reason }

// unanswered is a command that brought no answer. Another server, or the same one later, may give one.
type unanswered struct {
	err  error
	sent bool // it may have been applied
}

func (e *unanswered) Error() string { return e.err.Error() }
func (e *unanswered) Unwrap() error { return e.err }
