// Package fsm is the state machine behind a cluster: all semaphores, as a pure function of a log.
//
// A leader puts the requests that arrive at about the same time into one entry (Builder) and adds two
// numbers, its reading of the cluster's clock and the wall clock. Every node applies the same entries
// in the same order (State.Apply) and thereby computes the same state, the same replies, and the same
// grants to those who wait. Nothing else goes in: no clock, no randomness, no configuration. Defaults
// and limits are those of the node through which a request came, and travel with it.
//
// # An entry
//
// Apply first compares terms: an entry that was proposed under a leadership that has ended is void,
// and changes nothing. Then, in this order, it moves the clock, which never goes back; marks the
// waiters of lost nodes; processes what has fallen due, in the order of the deadlines; goes on with
// lines that an earlier entry left unfinished; and executes the requests one by one.
//
// What falls due of one semaphore is processed in its order: the end of a quarantine, of a lease, of
// a wait, and removal for being unused. At a tie permits become free before a wait for them ends.
// Whenever permits become free the line is served from its head, strictly first come, first served,
// so that a release and the grants that it makes possible are one step.
//
// # Bounded work
//
// A hundred thousand leases may end in one instant. An entry processes a portion, State.Next says
// that there is more, and the leader proposes the next entry at once: other semaphores wait for
// milliseconds. So a lease can be over and still be in the books. Three rules keep that invisible:
// a grant counts as live only by its end; a request first processes what is overdue of its own
// semaphore, in order, as far as the budget goes; and answers that show figures take what is overdue
// as over (overlay). Where nobody stands in line, a request is never refused because of the budget:
// it processes as many ended leases as its permits need. Three things are not cut: a change of
// QUARANTINE in the midst of a backlog, a deletion that sends a long line away, and the marking of a
// lost node's waiters. Removal of an unused semaphore may come an entry late.
//
// # Parts
//
// A sem is one semaphore: its record, which is what a snapshot holds of it, and beside it what can be
// computed from that (heaps of deadlines, indexes by holder, free slots). Grants stand in a tree by
// token and waiters in one by place, which is also what listings page through; their cursors are the
// last token, place or id seen, so that whatever stays is seen once. Slots are the places that
// permits occupy: a grant takes the lowest free ones, and only the gaps are stored, so that a capacity
// of 2^53-1 costs nothing. Tokens come from one counter for all semaphores, or from the wall clock
// where that is ahead; it is the only use of the wall clock.
//
// A waiter whose node was lost is an orphan: it keeps its place for a grace, and a repeat with the
// same holder adopts it. A grant made to an orphan cannot have been delivered, so it is given back at
// the end of the grace, unless its holder turns up.
//
// # Snapshots
//
// State.Snapshot returns at once. It copies the tree of records (which the tree does lazily) and
// begins a new epoch; whatever belongs to an older epoch is copied before it is changed (State.write,
// State.edit, State.amend). So Snapshot.WriteTo may run beside Apply. The bytes are a function of the
// state alone: replicas can be compared by them.
//
// Entries and snapshots are documented in entry.go, request.go and snapshot.go. Both carry a version
// and a checksum; what cannot be decoded is an error, after which the state must not be used.
//
// To add a command, edit request.go (its kind and encoding), decode.go (decoding), apply.go (the
// dispatch) and the file of its subject, and give it to the gambler in random_test.go and to the model
// beside it. To add something to the state, edit snapshot.go, restore.go and check.go as well.
package fsm
