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
// and makes up for messages that were lost. Where such clients pass permits on to each other by BRPOP,
// no call would ever find one; a hungry line takes a turn among them (see hunt.go).
//
// # When the outcome is not known
//
// The reply to a call may be lost, and Redis may yet carry the call out. So the desk sends the same
// requests again under the same tickets. A request that took effect the first time is recognised by its
// ticket and answered as the first time; and once Redis has seen a call, it does not carry out an earlier
// one of the same server any more. Asking again is all that is needed to learn what happened. Nobody is
// told that he got nothing before that is certain: who leaves the line meanwhile gives back what he
// may have got. Those who cannot be answered in time are told UNCERTAIN, and what they may have got is
// given back when it is known.
//
// # The pass
//
// From time to time one of the servers looks after all semaphores: it ends leases that nobody waits for,
// removes what nobody uses, and restores permits that were lost between BRPOP and ZADD, when nobody has
// touched the semaphore for the grace.
//
// # Where things are
//
// desk.go makes calls, flight.go takes in what became of them, undo.go gives back. line.go is who stands
// in line, waits.go how waits begin and end, item.go a request, requests.go what is not shared. loop.go
// and alarms.go run desks; core.go is all of them, over books (books.go); remote.go is the books in a
// Redis; engine.go puts the parts together. pass.go, restore.go and turn.go are the pass.
//
// To add a command, edit requests.go (what the desk does with it) and remote.go (its call), after the
// steps in script have it.
package redisbackend
