// Package cluster is the engine of cluster mode: semaphores in a Raft state machine, durable and
// linearizable. One node is a cluster of one.
//
// A request's way through the package:
//
//	Do          encodes its requests and queues them as one run          (node.go, run.go, queue.go)
//	proposer    closes a batch of runs, stamps it, hands it to Raft      (proposer.go)
//	Raft        replicates and flushes it                                (hashicorp/raft, stores.go)
//	machine     applies it, and answers the runs of this node            (machine.go)
//	waits       keeps the requests that stand in line until they end     (waits.go)
//
// Group commit. Whatever arrives while entries are in flight goes into the next entry, so the price of
// a flush is shared by all connections; there is no timer that a request would wait for. At most two
// entries are in flight.
//
// Answers come from the log. Raft's future can say that an entry was certainly not applied (then its
// runs are proposed again), but never that it was: a future may stay unanswered, or say that
// leadership was lost, which means unknown. The machine applies every entry, finds its own runs by
// their ticket numbers, and answers them; and the Open of a later term proves that what was proposed
// before and has not been applied never will be. Only what is unresolved when the caller's time is up
// is reported as uncertain, and then looked after: a grant that nobody repeats within the grace is
// given back.
//
// Time. Leases end by the cluster's own clock, which only entries move. Each leadership begins with an
// Open entry; its clock starts from the state machine's clock before that Open, carried forward by the
// time that the leader itself has seen pass since it applied the last entry (clock.go). Wall clocks
// take no part in it: they only make tokens large. While anything has a deadline, the leader writes an
// entry when the next one is due, and at least one every second.
//
// Waiters are in the state machine, so a change of leader does not touch them. When a node's process
// is gone, the leader writes that its waiters are lost: they keep their places for a grace, in which
// their clients can come back for them with the same holder.
//
// Members. A cluster has an id, made at random, and so has each node. Raft connections are between
// nodes of one cluster, each to a node that is meant by its id: whatever goes wrong while a cluster is
// formed (forming.go) or changed (join.go, change.go, promote in care.go), two clusters never mix, and
// a node whose disk was lost never votes under its old id. What a node promises it has written down
// first (identity.go, papers.go), and when its log is not whole, it does not start (evidence.go); nor does
// a cluster of one that is to join another (foreigners.go). What speaks against a start is found out before
// the directory is touched. Nodes find out about each other by asking (query.go, look.go, roster.go); the
// leader changes the members one at a time, and never guesses what became of a change (turn.go, toleader.go).
//
// To add a command, edit fsm (the format and the meaning of the request); this package carries
// requests without looking into them, except for Acquire. To add a question that nodes ask each other,
// edit query.go.
package cluster
