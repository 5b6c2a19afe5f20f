// Command fencing shows how a database refuses a holder that has come back from the dead.
//
//	semserver &
//	go run .
//
// Two writers share a semaphore with one permit, and so one slot. The first is paused in the middle of its
// work, as by a long garbage collection or a frozen machine, until its lease is over. The second gets
// the permit and writes. Then the first goes on: it knows nothing, and writes as well. Nothing but the
// database can refuse that, by the token and the slots that every write presents:
//
//	fence.go    the rule: one row for each slot, tokens that only grow
//	writer.go   the holders, each a process of its own
//	main.go     the story
//
// The rule is the same for any capacity. Its rows are in fence.go; a write that has a permit for several
// slots presents all of them.
//
// To add a table that is guarded, call [Fence.Write] with what is to be written to it.
package main
