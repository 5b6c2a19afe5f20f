package fsm

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// overlay is what is overdue of one semaphore and yet to be processed. It counts as over in every
// answer.
type overlay struct {
	of    *sem
	now   Time
	moves uint64

	grants      int64
	waits       int64
	orphans     int64
	permits     int64 // of the grants
	expirations int64 // those of the grants whose lease ended
	quarantined int64 // permits that are to be, less those that are no longer
	heldTotal   int64 // of the leases that ended
	waitTotal   int64 // of the waits
	nextEnd     Time  // of the grants that are live
}

// overdue returns what is overdue of m. Requests that change nothing ask again and again, so the
// latest one is kept.
func (s *State) overdue(m *sem) *overlay {
	if o := s.overlay; o != nil && o.of == m && o.now == s.now && o.moves == s.moves {
		return o
	}
	o := &overlay{of: m, now: s.now, moves: s.moves, nextEnd: never}
	m.grants.heap.prefix(func(g *grant) bool { return o.grant(g, m.rec.settings.quarantine) })
	if m.waiters != nil {
		m.waiters.heap.prefix(o.wait)
	}
	if m.rec.quarantine != nil {
		m.rec.quarantine.Scan(func(p parole) bool {
			if p.until > s.now {
				return false
			}
			o.quarantined -= width(p.slots)
			return true
		})
	}
	s.overlay = o
	return o
}

func (o *overlay) grant(g *grant, quarantine int64) bool {
	if g.live(o.now) {
		o.nextEnd = min(o.nextEnd, g.due())
		return false
	}
	n := g.permits()
	o.grants++
	o.permits += n
	if g.due() < g.end {
		return true
	}
	o.expirations++
	o.heldTotal += g.end.since(g.granted)
	if quarantine > 0 && g.end.plus(quarantine) > o.now {
		o.quarantined += n
	}
	return true
}

func (o *overlay) wait(w *waiter) bool {
	if w.due() > o.now {
		return false
	}
	o.waits++
	o.waitTotal += w.due().since(w.joined)
	if w.orphan() {
		o.orphans++
	}
	return true
}

// usage returns the state of the permits, with what is overdue taken as over.
func (m *sem) usage(o *overlay) semaphore.Usage {
	inUse := m.inUse - o.permits
	return semaphore.Usage{
		Capacity:  m.rec.capacity,
		InUse:     inUse,
		Available: max(0, m.rec.capacity-inUse-m.quarantined-o.quarantined),
	}
}

// read answers a request that changes nothing.
func (s *State) read(q semaphore.Request) semaphore.Reply {
	if scan, ok := q.(semaphore.Scan); ok {
		return semaphore.Reply{Value: s.scan(scan)}
	}
	m := s.byName[q.Semaphore()]
	if m != nil && s.lapsed(m) {
		m = nil
	}
	if check, ok := q.(semaphore.Check); ok {
		return s.check(m, check)
	}
	if m == nil {
		return refuse(semaphore.ErrNoSemaphore)
	}
	switch q := q.(type) {
	case semaphore.Inspect:
		return semaphore.Reply{Value: s.inspect(m)}
	case semaphore.Holders:
		return semaphore.Reply{Value: s.holders(m, q)}
	default:
		return semaphore.Reply{Value: s.line(m, q.(semaphore.Waiters))}
	}
}

// lapsed says that the semaphore is overdue to be removed.
func (s *State) lapsed(m *sem) bool {
	what, when := m.upcoming()
	return what == dueRemoval && when <= s.now
}

func (s *State) check(m *sem, q semaphore.Check) semaphore.Reply {
	if m == nil {
		return no()
	}
	if g := m.live(q.Holder, s.now); g == nil || g.token != q.Token {
		return no()
	}
	return yes()
}

func (s *State) inspect(m *sem) *semaphore.Info {
	o, rec := s.overdue(m), m.rec
	info := &semaphore.Info{
		Name:        rec.name,
		Usage:       m.usage(o),
		Quarantined: m.quarantined + o.quarantined,
		Rows:        max(rec.capacity, m.slots.top),
		Holders:     int64(m.grants.len()) - o.grants,
		LastToken:   rec.last,
		Settings:    rec.settings.vocabulary(),
	}
	counters := rec.counters
	counters.expirations += o.expirations
	counters.heldTotal += o.heldTotal
	counters.waitTimeouts += o.waits
	counters.waitTotal += o.waitTotal
	info.Counters = counters.vocabulary()
	info.Excess = max(0, info.InUse-info.Capacity)
	if o.nextEnd != never {
		info.NextExpiry = semaphore.Set(duration(o.nextEnd.since(s.now)))
	}
	if m.waiters == nil {
		return info
	}
	info.Waiters = int64(rec.line.Len()) - o.waits
	info.Orphans = int64(m.waiters.orphans) - o.orphans
	rec.line.Scan(func(_ uint64, w *waiter) bool {
		if w.due() <= s.now {
			return true
		}
		info.OldestWait = duration(s.now.since(w.joined))
		return false
	})
	return info
}

func (c counters) vocabulary() semaphore.Counters {
	return semaphore.Counters{
		GrantsImmediate: c.grantsImmediate,
		GrantsWaited:    c.grantsWaited,
		Refused:         c.refused,
		WaitTimeouts:    c.waitTimeouts,
		WaitTotal:       duration(c.waitTotal),
		Releases:        c.releases,
		Renewals:        c.renewals,
		Expirations:     c.expirations,
		Reconciled:      c.reconciled,
		HeldTotal:       duration(c.heldTotal),
	}
}

// page returns how many rows a listing may have.
func page(count int) int { return min(max(count, 1), semaphore.MaxCount) }

// holders lists live grants by token, which is their order of being made.
func (s *State) holders(m *sem, q semaphore.Holders) *semaphore.HolderPage {
	page, count := &semaphore.HolderPage{}, page(q.Count)
	m.rec.grants.Ascend(int64(min(q.Cursor, semaphore.MaxCapacity))+1, func(_ int64, g *grant) bool {
		if !g.live(s.now) {
			return true
		}
		if len(page.Rows) == count {
			page.Next = uint64(page.Rows[count-1].Token)
			return false
		}
		page.Rows = append(page.Rows, semaphore.HolderRow{
			Holder: g.holder(), Token: g.token, Slot: g.slots()[0].First, Permits: g.permits(),
			Remaining: remaining(g.end, s.now), Held: duration(s.now.since(g.granted)), Client: g.label(),
		})
		return true
	})
	return page
}

func remaining(end, now Time) time.Duration {
	if end == never {
		return semaphore.Persist
	}
	return duration(end.since(now))
}

// line lists who waits, the head first.
func (s *State) line(m *sem, q semaphore.Waiters) *semaphore.WaiterPage {
	page, count := &semaphore.WaiterPage{}, page(q.Count)
	if m.waiters == nil {
		return page
	}
	var last uint64
	m.rec.line.Ascend(q.Cursor, func(seq uint64, w *waiter) bool {
		if seq == q.Cursor || w.due() <= s.now {
			return true
		}
		if len(page.Rows) == count {
			page.Next = last
			return false
		}
		last = seq
		page.Rows = append(page.Rows, semaphore.WaiterRow{
			Holder: w.holder(), Permits: w.permits, Waited: duration(s.now.since(w.joined)),
			Remaining: duration(w.due().since(s.now)), Client: w.label(),
		})
		return true
	})
	return page
}

// scan lists names in the order of creation.
func (s *State) scan(q semaphore.Scan) *semaphore.KeyPage {
	page, count := &semaphore.KeyPage{}, page(q.Count)
	var last uint64
	s.records.Ascend(q.Cursor, func(id uint64, rec *record) bool {
		if id == q.Cursor || s.lapsed(s.byName[rec.name]) {
			return true
		}
		if len(page.Keys) == count {
			page.Next = last
			return false
		}
		last = id
		page.Keys = append(page.Keys, rec.name)
		return true
	})
	return page
}
