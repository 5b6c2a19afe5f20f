package fsm

import (
	"slices"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// model is what a State is meant to do, written as plainly as possible: lists that are searched from
// end to end, one slot at a time, no portions. It shares no code with State. Times are microseconds.
type model struct {
	now, last, wall int64
	made            int
	sems            []*modelSem // in the order of creation
	limits          semaphore.Limits
	events          []Event
}

type modelSem struct {
	id       int
	name     string
	capacity int64
	set      semaphore.Settings
	born     bool
	unused   int64
	last     int64
	joins    uint64
	grants   []*modelGrant // by token
	line     []*modelWaiter
	paroles  []modelParole
	counters semaphore.Counters
}

type modelGrant struct {
	holder, label string
	token         int64
	slots         []int64
	granted, end  int64 // end -1: does not end
	length        int64 // -1: for ever
	undo          int64 // 0: not
	ticket        semaphore.Ticket
	waited, fresh bool
}

type modelWaiter struct {
	holder, label      string
	permits            int64
	lease, fallback    int64
	joined, end, grace int64
	seq                uint64
	made               bool
	ticket             semaphore.Ticket
}

type modelParole struct {
	until, token int64
	slots        []int64
}

func us(d time.Duration) int64 { return int64(d / time.Microsecond) }

func (m *model) sem(key string) *modelSem {
	for _, s := range m.sems {
		if s.name == key {
			return s
		}
	}
	return nil
}

// tell answers a waiter, unless its node was lost.
func (m *model) tell(w *modelWaiter, r semaphore.Reply) {
	if w.grace == 0 {
		m.events = append(m.events, Event{w.ticket, r})
	}
}

func (s *modelSem) taken() (slots []int64) {
	for _, g := range s.grants {
		slots = append(slots, g.slots...)
	}
	for _, p := range s.paroles {
		slots = append(slots, p.slots...)
	}
	return slots
}

func (s *modelSem) inUse() (n int64) {
	for _, g := range s.grants {
		n += int64(len(g.slots))
	}
	return n
}

func (s *modelSem) fits(n int64) bool { return int64(len(s.taken()))+n <= s.capacity }

func (s *modelSem) grant(holder string) *modelGrant {
	for _, g := range s.grants {
		if g.holder == holder {
			return g
		}
	}
	return nil
}

func (s *modelSem) waiter(holder string) *modelWaiter {
	for _, w := range s.line {
		if w.holder == holder {
			return w
		}
	}
	return nil
}

func without[T comparable](list []T, x T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(y T) bool { return y == x })
}

func (m *model) dropGrant(s *modelSem, g *modelGrant, at int64) {
	s.grants = without(s.grants, g)
	if len(s.grants)+len(s.line) == 0 {
		s.unused = at
	}
}

func (m *model) dropWaiter(s *modelSem, w *modelWaiter, left, at int64) {
	s.line = without(s.line, w)
	s.counters.WaitTotal += time.Duration(left-w.joined) * time.Microsecond
	if len(s.grants)+len(s.line) == 0 {
		s.unused = at
	}
}

// advance moves the clock and processes, one by one, whatever has been due for longest.
func (m *model) advance(now int64) {
	m.now = max(m.now, now)
	for {
		var first func()
		best := m.now + 1
		for _, s := range m.sems {
			when, what := m.due(s)
			if what != nil && when < best {
				best, first = when, what
			}
		}
		if first == nil {
			return
		}
		first()
	}
}

// due returns what is due next of a semaphore: end of quarantine, then of a grant, then of a wait,
// then removal.
func (m *model) due(s *modelSem) (when int64, what func()) {
	take := func(t int64, f func()) {
		if what == nil || t < when {
			when, what = t, f
		}
	}
	slices.SortStableFunc(s.paroles, func(a, b modelParole) int { return int(a.until - b.until) })
	if len(s.paroles) > 0 {
		take(s.paroles[0].until, func() { s.paroles = s.paroles[1:]; m.serve(s) })
	}
	for _, g := range s.grants {
		if g.undo != 0 && (g.end < 0 || g.undo < g.end) {
			take(g.undo, func() { m.undo(s, g, g.undo); m.serve(s) })
		} else if g.end >= 0 {
			take(g.end, func() { m.expire(s, g); m.serve(s) })
		}
	}
	for _, w := range s.line {
		end := w.end
		if w.grace != 0 {
			end = min(end, w.grace)
		}
		take(end, func() {
			m.dropWaiter(s, w, end, end)
			s.counters.WaitTimeouts++
			m.tell(w, semaphore.Reply{})
			m.serve(s)
		})
	}
	if s.set.Idle.Given && len(s.grants)+len(s.line)+len(s.paroles) == 0 {
		take(s.unused+us(s.set.Idle.Value), func() { m.sems = without(m.sems, s) })
	}
	return when, what
}

func (m *model) undo(s *modelSem, g *modelGrant, at int64) {
	m.dropGrant(s, g, at)
	switch {
	case g.fresh:
		s.counters.Renewals--
	case g.waited:
		s.counters.GrantsWaited--
	default:
		s.counters.GrantsImmediate--
	}
}

func (m *model) expire(s *modelSem, g *modelGrant) {
	m.dropGrant(s, g, g.end)
	s.counters.Expirations++
	s.counters.HeldTotal += time.Duration(g.end-g.granted) * time.Microsecond
	if s.set.Quarantine.Given {
		s.paroles = append(s.paroles, modelParole{g.end + us(s.set.Quarantine.Value), g.token, g.slots})
	}
}

func (m *model) serve(s *modelSem) {
	for len(s.line) > 0 {
		w := s.line[0]
		if !s.fits(w.permits) {
			return
		}
		m.dropWaiter(s, w, m.now, m.now)
		g := &modelGrant{holder: w.holder, label: w.label, ticket: w.ticket, undo: w.grace, waited: true}
		m.issue(s, g, w.permits, s.leaseOf(w.lease, w.fallback))
		s.counters.GrantsWaited++
		m.tell(w, semaphore.Reply{Value: m.told(g, w.ticket, false)})
	}
}

func (m *model) issue(s *modelSem, g *modelGrant, permits, length int64) {
	taken := s.taken()
	for slot := int64(0); int64(len(g.slots)) < permits; slot++ {
		if !slices.Contains(taken, slot) {
			g.slots = append(g.slots, slot)
		}
	}
	m.date(s, g, length)
	s.grants = append(s.grants, g)
}

func (m *model) date(s *modelSem, g *modelGrant, length int64) {
	m.last++
	if m.wall <= 1<<52 && m.wall > m.last {
		m.last = m.wall
	}
	s.last = m.last
	g.token, g.granted = m.last, m.now
	m.setLease(s, g, length)
}

func (m *model) setLease(s *modelSem, g *modelGrant, length int64) {
	g.length, g.end = length, -1
	if length >= 0 {
		g.end = m.now + length
	}
	if s.set.MaxHold.Given {
		limit := g.granted + us(s.set.MaxHold.Value)
		if g.end < 0 || g.end > limit {
			g.end = limit
		}
	}
}

// leaseOf is the length of a lease asked for (0: not named, -1: for ever).
func (s *modelSem) leaseOf(asked, fallback int64) int64 {
	if asked == 0 && s.set.Lease.Given {
		asked = us(s.set.Lease.Value)
	}
	if asked == 0 {
		asked = fallback
	}
	if limit := us(s.set.MaxLease.Value); s.set.MaxLease.Given && (asked < 0 || asked > limit) {
		return limit
	}
	return asked
}

func askedLease(d time.Duration) int64 {
	if d == semaphore.Persist {
		return -1
	}
	return us(d)
}

func (m *model) told(g *modelGrant, t semaphore.Ticket, replayed bool) *semaphore.Grant {
	return &semaphore.Grant{Holder: g.holder, Token: g.token, Slots: asRanges(g.slots), Lease: m.left(g.end), Replayed: replayed, Ticket: t}
}

func (m *model) left(end int64) time.Duration {
	if end < 0 {
		return semaphore.Persist
	}
	return time.Duration(end-m.now) * time.Microsecond
}

func asRanges(slots []int64) (ranges []semaphore.Range) {
	for _, slot := range slots {
		if n := len(ranges); n > 0 && ranges[n-1].Last+1 == slot {
			ranges[n-1].Last = slot
			continue
		}
		ranges = append(ranges, semaphore.Range{First: slot, Last: slot})
	}
	return ranges
}
