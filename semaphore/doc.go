// Package semaphore is the vocabulary of semserver: what a semaphore is here, what can be asked of
// one, what is answered, and the contract that every engine keeps. It imports nothing of the project
// and everything points at it.
//
// A semaphore is a name and a capacity. At most capacity permits are held at once. A holder is the
// id under which permits are held; it names one attempt, not a machine. A grant is one success:
// holder, token, slots, permits, lease. The lease says how long the grant lasts unless it is renewed
// or released; the token is a number that only grows, by which the guarded resource can refuse a
// holder that has come back from the dead; the slots are the places, out of 0 … capacity-1, that the
// permits occupy. Who does not fit stands in line, strictly first come, first served; a [Ticket]
// names one request's place there.
//
// Requests are plain values ([Acquire], [Release], …). They are complete when they are built: the
// server has checked every argument and filled in every default, so an engine decides only what
// depends on the semaphore's state. A [Backend] takes a run of requests from one client at once and
// answers each by itself ([Reply]): a pipeline of sixteen commands costs one round trip to the
// engine, not sixteen.
//
// To add a command, edit request.go (the request), reply.go (what is answered), then the engines'
// dispatch (fsm), the command table (server), and the conformance suite in semtest.
package semaphore
