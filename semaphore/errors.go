package semaphore

import "fmt"

// Code is the first word of an error on the wire; clients branch on it.
type Code string

// The codes, by what the client may conclude.
const (
	// Refusals: the request was understood and changed nothing.
	CodeInvalid   Code = "ERR"       // an argument that this semaphore does not admit
	CodeNoSem     Code = "NOSEM"     // no such semaphore
	CodeConflict  Code = "CONFLICT"  // contradicts what is stored or held
	CodeTooMany   Code = "TOOMANY"   // more permits than the capacity
	CodeInUse     Code = "INUSE"     // cannot be deleted while held
	CodeQueueFull Code = "QUEUEFULL" // the line is as long as it may be
	CodeWrongType Code = "WRONGTYPE" // a key of ours holds something else (Redis mode)
	CodeBackend   Code = "BACKEND"   // Redis refused; nothing was done

	// Ends of a wait that brought nothing.
	CodeSuperseded Code = "SUPERSEDED" // another request of the same holder took over the place
	CodeUnblocked  Code = "UNBLOCKED"  // CLIENT UNBLOCK … ERROR
	CodeShutdown   Code = "SHUTDOWN"   // the server stops; not granted so far

	// Failures: the engine could not decide.
	CodeDown      Code = "CLUSTERDOWN" // certainly not applied; safe to retry
	CodeUncertain Code = "UNCERTAIN"   // perhaps applied; repeat it with the same holder
)

// Error is a refusal or a failure, as the client will read it. Two errors are the same, for
// errors.Is, when their codes are.
type Error struct {
	Code    Code
	Message string
}

// Error returns the code and the message, as on the wire.
func (e *Error) Error() string { return string(e.Code) + " " + e.Message }

// Is reports whether target is an Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Errorf makes an Error with a message of its own.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// The errors whose wording does not depend on the request.
var (
	ErrNoSemaphore = &Error{CodeNoSem, "no such semaphore"}
	ErrInUse       = &Error{CodeInUse, "permits of this semaphore are held; add FORCE to delete it all the same"}
	ErrQueueFull   = &Error{CodeQueueFull, "the line is as long as --max-waiters allows"}
	ErrSuperseded  = &Error{CodeSuperseded, "another request of this holder stands in its place"}
	ErrUnblocked   = &Error{CodeUnblocked, "client unblocked via CLIENT UNBLOCK"}
	ErrShutdown    = &Error{CodeShutdown, "the server is stopping; nothing was granted to this request"}
	ErrDown        = &Error{CodeDown, "no leader can be reached; the request was not applied"}
)

// Uncertain says that a request of this holder may or may not have been applied.
func Uncertain(holder string) *Error {
	return Errorf(CodeUncertain, "holder %s the outcome is not known; repeat the request with this HOLDER, or SEM.CANCEL and then SEM.RELEASE it", holder)
}
