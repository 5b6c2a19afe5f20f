// Package redisbackend is an engine: it keeps semaphores in a Redis that somebody else runs, beside
// clients that work on the same keys by hand. Every step is a script that Redis runs as one; what
// the scripts do is said in redisbackend/script, how they travel in redisbackend/link. This package
// decides when which step is taken, and keeps the line of those who wait.
//
// # Desks
//
// A semaphore that somebody uses at this moment has a desk. Requests gather at it; at most one call
// to Redis is in flight for it, and the next one takes along what has gathered, in the order of
// arrival. That is all there is to ordering, and it is what makes a busy semaphore cheap: the more
// requests come while a call is in flight, the more share the next. A desk exists only while there
// is something to do or somebody waits. Desks are spread over a few loops by the hash of their keys;
// a loop is one goroutine, and everything about a desk happens in it, so there are no locks.
//
// # The line
//
// Who waits stands in a line in this process; Redis knows nothing of single waiters. Every call
// takes the head of the line along as candidates, and a script that frees permits hands them over to
// these within the same step. What is left for others to know is the arrival of the head: the
// servers of one Redis keep it in a shared line, so that a permit freed through one server goes to
// the head of another if that has waited longer. It is then reserved for that server, which is told
// by a message and claims it by a call with its candidates.
//
// While somebody waits, the desk calls again at the end of the next lease, when a message names its
// semaphore, and twice a second in any case: that finds what clients who work by hand have pushed,
// and makes up for messages that were lost.
//
// # When the outcome is not known
//
// Every call carries the time, on Redis's clock, after which it does nothing. When its reply is
// lost, the desk waits until that time has passed and sends the same steps again under the same
// tickets. A step that took effect the first time is recognised by its ticket and answered as the
// first time, so asking again is all that is needed to learn what happened. Those who cannot be
// answered in time are told UNCERTAIN, and what they may have got is given back when it is known.
//
// To add a command, edit requests.go (what the desk does with it) after the steps in script have it.
package redisbackend
