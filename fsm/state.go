package fsm

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/semserver/semserver/semaphore"
)

// State is all semaphores. It is used by one goroutine at a time; only a Snapshot may be written
// meanwhile.
type State struct {
	now     Time
	last    int64  // the latest token, of any semaphore, or a floor set by hand
	ids     uint64 // semaphores made
	works   uint64 // places given out among the semaphores with unfinished work
	records btree.Map[uint64, *record]
	epoch   uint32 // of snapshots: a record, grant or waiter of an older one may be read by one
	stats   Stats

	byName  map[string]*sem
	due     heap[*sem]
	work    btree.Map[uint64, *sem] // with unfinished work, by record.work
	lines   btree.Map[uint64, *sem] // with a line, by id
	waiting map[uint64]int          // incarnation -> its waiters that are not orphans

	portion, allowance int // the constants of these names; tests lower them

	moves   uint64   // changes of grants, quarantine and lines: what an overlay depends on
	overlay *overlay // the latest one computed

	room []semaphore.Grant // for the next replies

	// Of the entry that is being applied.
	wall    int64
	budget  int   // steps left
	at      Time  // the moment that is being processed: now, or the deadline of what is overdue
	freed   int64 // permits put back into circulation by deadlines
	ticket  semaphore.Ticket
	limits  semaphore.Limits
	replies bool // the section's replies are wanted
	wanted  func(incarnation uint64) bool
	events  []Event
}

// Stats are totals over all semaphores. The second part counts since the state began; it is kept in
// snapshots.
type Stats struct {
	Semaphores  int64
	Holders     int64 // grants, those included that have ended and are yet to be processed
	InUse       int64 // permits
	Quarantined int64 // permits
	Waiters     int64
	Orphans     int64
	Unfinished  int64 // semaphores whose line is not served as far as it could be

	Granted    int64 // grants made
	GivenBack  int64 // grants undone, because nobody was told of them
	Released   int64
	Renewed    int64
	Expired    int64 // leases that ended while held
	Refused    int64 // requests that got no permit, without a wait
	TimedOut   int64 // waits that ended without a grant
	Reconciled int64 // permits put back by Reconcile
	Removed    int64 // semaphores removed because nobody used them
}

// New returns a state without semaphores, its clock at 0.
func New() *State {
	return &State{
		byName:  make(map[string]*sem),
		waiting: make(map[uint64]int),
		portion: portion, allowance: allowance,
	}
}

// Now returns the cluster's clock as of the last entry.
func (s *State) Now() Time { return s.now }

// Next returns when something falls due next. It is not later than Now where an entry left work
// undone: the next tick is to be proposed at once.
func (s *State) Next() (Time, bool) {
	if s.work.Len() > 0 {
		return s.now, true
	}
	if len(s.due) == 0 {
		return 0, false
	}
	return s.due[0].next, true
}

// Waiting returns the incarnations that have waiters which are not orphans, in growing order.
func (s *State) Waiting() []uint64 {
	all := make([]uint64, 0, len(s.waiting))
	for incarnation := range s.waiting {
		all = append(all, incarnation)
	}
	slices.Sort(all)
	return all
}

// Stats returns the totals. It costs nothing.
func (s *State) Stats() Stats {
	stats := s.stats
	stats.Unfinished = int64(s.work.Len())
	return stats
}
