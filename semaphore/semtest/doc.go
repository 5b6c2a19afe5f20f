// Package semtest checks that an engine keeps the contract of [semaphore.Backend]. It is the one
// description of behaviour that all engines share; an engine's own tests call [Run] with a function
// that opens it.
//
// The cases are grouped by noun, a file each: repeat (asking again), lease, line (waiting),
// capacity, fencing (tokens and slots), batch, undelivered (grants that nobody read, and leaving the
// line), books (counters and listings), load (many clients at once). Each case has a semaphore of its
// own, so most of them run side by side, which also checks that semaphores do not disturb each other.
//
// Time is real here, because an engine's clock is its own. Two rules keep the cases from failing on a
// slow machine: what must not come early is measured from before the request to after the answer,
// which a slow machine only lengthens; what must come at all gets the generous [patience]. Where a
// case needs time to pass, it takes a short lease on a semaphore beside its own and waits for its end.
//
// To add a case, write a function of a *sem and list it at the top of its file.
package semtest
