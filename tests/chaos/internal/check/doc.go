// Package check says whether a history keeps what semserver promises.
//
// [Promises] looks for each promise by itself, so that what is broken has a name: capacity, tokens,
// acknowledged grants, lease ends, the line, answers. [Linearizable] looks at a semaphore's whole history
// at once: is there one order of all requests, each within its call and return, in which a semaphore
// that does one thing at a time gives these answers? The search is porcupine's; the semaphore is in
// model.go.
//
// What can be known from outside. A client knows its own clock alone, and the servers' clocks run at
// rates that are right to 1 %. So a grant is *certainly live* from the reply that tells of it to the
// earliest moment at which its lease can have ended, counted from before the request that asked for
// it, or to the call of the first request that may have ended it. Whatever is not certain is decided in
// the server's favour: a violation that is reported is one.
//
// What was not answered (Unknown) may have happened, or may happen as late as a fault has kept it
// from the server; who reads of it later learns its token, and if nobody does, it may have kept a permit
// from others for a while (hidden.go). It never makes room, and never has a token below one that was
// told.
//
// The checks rely on two habits of the clients in package load: a holder's id is used for one attempt, and
// a renewal never asks for less than was granted.
//
// To add a check, write a function from a book to violations, and name it in promises; then forge a
// history in forged_test.go that it refuses.
package check
