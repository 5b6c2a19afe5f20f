package fsm

import (
	"strings"

	"github.com/tidwall/btree"

	"github.com/semserver/semserver/semaphore"
)

// record is what a snapshot holds of a semaphore. It is never changed once a snapshot has seen it:
// State.write copies one of an older epoch first, its trees lazily.
type record struct {
	id         uint64 // in the order of creation
	name       string
	capacity   int64
	settings   settings
	counters   counters
	unused     Time   // since when nobody holds or waits; meaningless while somebody does
	last       int64  // the latest token; 0: none yet
	joins      uint64 // places in line given out
	work       uint64 // its place among the semaphores with unfinished work; 0: none
	sweep      uint64 // the line is yet to be searched, from this place on, for who wants too much; 0: no
	epoch      uint32
	born       bool // made by an Acquire, and no Create has confirmed it
	grants     btree.Map[int64, *grant]
	line       *btree.Map[uint64, *waiter] // nil while nobody waits
	quarantine *btree.BTreeG[parole]       // nil while empty
}

// counters count since the semaphore was made. Times are in microseconds.
type counters struct {
	grantsImmediate, grantsWaited, refused, waitTimeouts, waitTotal int64
	releases, renewals, expirations, reconciled, heldTotal          int64
}

// parole is an expired grant's slots, out of circulation for a while.
type parole struct {
	until Time
	token int64
	slots []semaphore.Range
}

func newQuarantine() *btree.BTreeG[parole] {
	return btree.NewBTreeGOptions(func(a, b parole) bool {
		if a.until != b.until {
			return a.until < b.until
		}
		return a.token < b.token
	}, btree.Options{NoLocks: true})
}

func (r *record) copied(epoch uint32) *record {
	c := *r
	c.epoch = epoch
	// Copy renews the identity of both sides; the tree that a snapshot reads must not be touched, so
	// it is the copy that is copied.
	c.grants = *c.grants.Copy()
	if r.line != nil {
		line := *r.line
		c.line = line.Copy()
	}
	if r.quarantine != nil {
		quarantine := *r.quarantine
		c.quarantine = quarantine.Copy()
	}
	return &c
}

// sem is one semaphore: its record, and beside it what can be computed from the record.
type sem struct {
	rec         *record
	grants      crowd[*grant]
	waiters     *waiters // nil while nobody waits
	slots       slots
	inUse       int64
	quarantined int64 // permits
	next        Time  // when something falls due; never: nothing does
	at          int32 // in State.due
}

func (m *sem) before(other *sem) bool {
	if m.next != other.next {
		return m.next < other.next
	}
	return m.rec.id < other.rec.id
}

func (m *sem) place() *int32 { return &m.at }

// unused says that nobody holds or waits.
func (m *sem) unused() bool { return m.grants.len() == 0 && m.waiters == nil }

// fits says that n permits are free.
func (m *sem) fits(n int64) bool { return n <= m.rec.capacity-m.inUse-m.quarantined }

// write returns the record of m, to be changed.
func (s *State) write(m *sem) *record {
	if m.rec.epoch != s.epoch {
		m.rec = m.rec.copied(s.epoch)
		s.records.Set(m.rec.id, m.rec)
	}
	return m.rec
}

// make makes a semaphore that nobody uses.
func (s *State) make(name string, capacity int64, set settings) *sem {
	s.ids++
	rec := &record{
		id: s.ids, name: strings.Clone(name), capacity: capacity, settings: set,
		unused: s.now, epoch: s.epoch,
	}
	m := &sem{rec: rec, next: never, at: outside}
	s.enter(m)
	s.schedule(m)
	return m
}

func (s *State) enter(m *sem) {
	s.byName[m.rec.name] = m
	s.records.Set(m.rec.id, m.rec)
	s.stats.Semaphores++
}

// remove forgets a semaphore. Nobody waits any more.
func (s *State) remove(m *sem) {
	s.finished(m)
	if m.at != outside {
		s.due.remove(m)
	}
	m.next = removed
	delete(s.byName, m.rec.name)
	s.records.Delete(m.rec.id)
	s.stats.Semaphores--
	s.stats.Holders -= int64(m.grants.len())
	s.stats.InUse -= m.inUse
	s.stats.Quarantined -= m.quarantined
	s.moves++
}

// unfinished notes that m's line is not served as far as it could be.
func (s *State) unfinished(m *sem) {
	if m.rec.work != 0 {
		return
	}
	s.works++
	s.write(m).work = s.works
	s.work.Set(s.works, m)
}

func (s *State) finished(m *sem) {
	if m.rec.work == 0 {
		return
	}
	s.work.Delete(m.rec.work)
	s.write(m).work = 0
}
