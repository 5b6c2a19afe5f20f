package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// Exit statuses. Those of semctl itself are from sysexits.h, so that they are not taken for those of a
// command that it runs.
const (
	exitOK          = 0
	exitNo          = 1   // the answer is no: not held, refused
	exitUsage       = 64  // the command line is wrong, or was not confirmed; nothing was sent
	exitUnavailable = 69  // no server answered, or what became of the request is not known
	exitFailure     = 70  // something on this machine broke
	exitNotInTime   = 75  // no permit in time: try again later
	exitInterrupted = 130 // a signal asked for an end
)

// statusError is an error with the exit status that it ends the program with. Without a text nothing
// is printed: what there is to say has been said.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// exit ends the program with a status, without a word.
func exit(status int) error { return &statusError{status: status} }

// fail ends the program with a status and a line on stderr.
func fail(status int, format string, args ...any) error {
	return &statusError{status, fmt.Errorf(format, args...)}
}

// statusOf is the exit status that an error asks for.
func statusOf(err error) int {
	var own *statusError
	var refusal *remote.Refusal
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		return own.status
	case errors.Is(err, remote.ErrUnavailable), errors.Is(err, remote.ErrUnknown): // the last server's refusal is only why
		return exitUnavailable
	case errors.As(err, &refusal) && refusal.Code == "QUEUEFULL":
		return exitNotInTime
	case errors.As(err, &refusal):
		return exitNo
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailure
}

// complaint is the line that says what went wrong; empty where nothing is to be said.
func complaint(err error) string {
	var own *statusError
	if err == nil || errors.As(err, &own) && own.err == nil {
		return ""
	}
	if errors.Is(err, context.Canceled) {
		return "semctl: interrupted"
	}
	return "semctl: " + visible(strings.ReplaceAll(err.Error(), "\n", "; "))
}
