package fsm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/semserver/semserver/semaphore"
)

// Check verifies every invariant. It looks at everything; tests call it after every step.
func (s *State) Check() error {
	sum := Stats{}
	waiting := make(map[uint64]int)
	lines, works, due := 0, 0, 0
	var err error
	s.records.Scan(func(id uint64, rec *record) bool {
		m := s.byName[rec.name]
		if m == nil || m.rec != rec || rec.id != id || id > s.ids {
			err = fmt.Errorf("semaphore %q (%d) is not found by its name", rec.name, id)
			return false
		}
		if err = s.checkSem(m); err != nil {
			err = fmt.Errorf("semaphore %q: %w", rec.name, err)
			return false
		}
		sum.add(m, waiting)
		lines += truth(m.waiters != nil)
		works += truth(rec.work != 0)
		due += truth(m.next != never)
		return true
	})
	switch {
	case err != nil:
		return err
	case len(s.byName) != s.records.Len():
		return fmt.Errorf("%d names for %d semaphores", len(s.byName), s.records.Len())
	case lines != s.lines.Len() || works != s.work.Len() || due != len(s.due):
		return fmt.Errorf("%d lines, %d works, %d due in the indexes, want %d, %d, %d",
			s.lines.Len(), s.work.Len(), len(s.due), lines, works, due)
	case !sameCounts(waiting, s.waiting):
		return fmt.Errorf("waiters by node: %v, want %v", s.waiting, waiting)
	}
	return s.checkStats(sum)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sameCounts(a, b map[uint64]int) bool {
	for key, n := range a {
		if b[key] != n {
			return false
		}
	}
	return len(a) == len(b)
}

func (t *Stats) add(m *sem, waiting map[uint64]int) {
	t.Semaphores++
	t.Holders += int64(m.grants.len())
	t.InUse += m.inUse
	t.Quarantined += m.quarantined
	if m.waiters == nil {
		return
	}
	m.rec.line.Scan(func(_ uint64, w *waiter) bool {
		t.Waiters++
		if w.orphan() {
			t.Orphans++
			return true
		}
		waiting[w.ticket.Incarnation]++
		return true
	})
}

func (s *State) checkStats(sum Stats) error {
	have := Stats{
		Semaphores: s.stats.Semaphores, Holders: s.stats.Holders, InUse: s.stats.InUse,
		Quarantined: s.stats.Quarantined, Waiters: s.stats.Waiters, Orphans: s.stats.Orphans,
	}
	if have != sum {
		return fmt.Errorf("totals %+v, want %+v", have, sum)
	}
	return nil
}

func (s *State) checkSem(m *sem) error {
	if err := s.checkGrants(m); err != nil {
		return err
	}
	if err := m.checkSlots(); err != nil {
		return err
	}
	if err := s.checkLine(m); err != nil {
		return err
	}
	if _, next := m.upcoming(); m.next != next {
		return fmt.Errorf("due at %d, want %d", m.next, next)
	}
	if m.next != never && (m.at < 0 || int(m.at) >= len(s.due) || s.due[m.at] != m) {
		return fmt.Errorf("not where it should be among what is due")
	}
	if other, ok := s.work.Get(m.rec.work); m.rec.work != 0 && (!ok || other != m) {
		return fmt.Errorf("its unfinished work is not known")
	}
	if t := m.rec.settings; t.maxLease > 0 && t.lease > t.maxLease {
		return fmt.Errorf("LEASE is above MAXLEASE: %+v", t)
	}
	return nil
}

func (s *State) checkGrants(m *sem) error {
	if err := m.grants.check(); err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	if m.rec.grants.Len() != m.grants.len() {
		return fmt.Errorf("%d grants stored, %d found", m.rec.grants.Len(), m.grants.len())
	}
	inUse := int64(0)
	live := make(map[string]bool)
	for _, g := range m.grants.heap {
		inUse += g.permits()
		stored, _ := m.rec.grants.Get(g.token)
		switch {
		case stored != g:
			return fmt.Errorf("grant %d is not the one stored", g.token)
		case g.token < 1 || g.token > s.last || g.token > m.rec.last:
			return fmt.Errorf("token %d is above the latest, %d and %d", g.token, m.rec.last, s.last)
		case g.permits() < 1:
			return fmt.Errorf("grant %d has no permits", g.token)
		case g.live(s.now) && live[g.holder()]:
			return fmt.Errorf("holder %q has two live grants", g.holder())
		case g.live(s.now) && m.grants.find(g.holder()) != g:
			return fmt.Errorf("the live grant of %q is not found", g.holder())
		}
		live[g.holder()] = live[g.holder()] || g.live(s.now)
	}
	if inUse != m.inUse {
		return fmt.Errorf("%d permits in use, want %d", m.inUse, inUse)
	}
	return nil
}

// checkSlots verifies that every slot is taken at most once and that the rest is free.
func (m *sem) checkSlots() error {
	var taken []semaphore.Range
	quarantined := int64(0)
	for _, g := range m.grants.heap {
		taken = append(taken, g.slots()...)
	}
	if m.rec.quarantine != nil {
		if m.rec.quarantine.Len() == 0 {
			return fmt.Errorf("an empty quarantine is kept")
		}
		m.rec.quarantine.Scan(func(p parole) bool {
			taken = append(taken, p.slots...)
			quarantined += width(p.slots)
			return true
		})
	}
	if quarantined != m.quarantined {
		return fmt.Errorf("%d permits in quarantine, want %d", m.quarantined, quarantined)
	}
	want := slots{}
	if !want.occupy(taken) {
		slices.SortFunc(taken, func(a, b semaphore.Range) int { return cmp.Compare(a.First, b.First) })
		return fmt.Errorf("a slot is taken twice: %v", taken)
	}
	if got, want := m.slots.list(), want.list(); !slices.Equal(got, want) {
		return fmt.Errorf("free slots %v, want %v", got, want)
	}
	return nil
}

// list returns the free places; the last range begins at the top.
func (s *slots) list() []semaphore.Range {
	var free []semaphore.Range
	if s.gaps != nil {
		s.gaps.Scan(func(first, last int64) bool {
			free = append(free, semaphore.Range{First: first, Last: last})
			return true
		})
	}
	return append(free, semaphore.Range{First: s.top, Last: s.top})
}

func (s *State) checkLine(m *sem) error {
	if m.waiters == nil {
		if m.rec.line != nil || m.rec.sweep != 0 {
			return fmt.Errorf("a line without waiters")
		}
		return nil
	}
	if err := m.waiters.check(); err != nil {
		return fmt.Errorf("waiters: %w", err)
	}
	n := m.rec.line.Len()
	if n == 0 || n != m.waiters.len() {
		return fmt.Errorf("%d in line, %d found", n, m.waiters.len())
	}
	orphans := 0
	for _, w := range m.waiters.heap {
		stored, _ := m.rec.line.Get(w.seq)
		orphans += truth(w.orphan())
		switch {
		case stored != w || m.waiter(w.holder()) != w:
			return fmt.Errorf("waiter %q is not the one stored", w.holder())
		case w.seq > m.rec.joins:
			return fmt.Errorf("place %d was never given out", w.seq)
		case m.live(w.holder(), s.now) != nil:
			return fmt.Errorf("%q both waits and holds", w.holder())
		}
	}
	if orphans != m.waiters.orphans {
		return fmt.Errorf("%d orphans, want %d", m.waiters.orphans, orphans)
	}
	_, head, _ := m.rec.line.Min()
	if m.fits(head.permits) && m.rec.work == 0 && m.next > s.now {
		return fmt.Errorf("the head of the line waits though it fits")
	}
	return nil
}

// check verifies places, order and index.
func (c *crowd[T]) check() error {
	if c.byHolder != nil {
		if err := c.byHolder.check(c.heap); err != nil {
			return err
		}
	}
	for i, x := range c.heap {
		if int(*x.place()) != i {
			return fmt.Errorf("element %d believes to be at %d", i, *x.place())
		}
		if i > 0 && x.before(c.heap[(i-1)/2]) {
			return fmt.Errorf("element %d comes before the one above it", i)
		}
	}
	return nil
}

// check verifies that all members stand where they are found, and in a heap.
func (x *index[T]) check(h heap[T]) error {
	if len(x.tables) != 1<<x.bits {
		return fmt.Errorf("%d tables for %d bits", len(x.tables), x.bits)
	}
	for i := 0; i < len(x.tables); {
		t, n := x.tables[i], 0
		for at, hash := range t.hashes {
			if hash == 0 {
				continue
			}
			n++
			m := t.members[at]
			if x.hash(m.holder()) != hash || x.table(hash) != t || t.seek(hash, m.holder()) != at {
				return fmt.Errorf("holder %q does not stand where it is searched", m.holder())
			}
			if place := int(*m.place()); place < 0 || place >= len(h) || h[place] != m {
				return fmt.Errorf("holder %q leads to who is gone", m.holder())
			}
		}
		if n != t.n {
			return fmt.Errorf("%d members in a table that counts %d", n, t.n)
		}
		i += 1 << (x.bits - t.bits)
	}
	return nil
}
