package fsm

import (
	"slices"

	"github.com/semserver/semserver/semaphore"
)

// portion is how many leases, waits, grants and removals one entry processes: an entry takes a few
// milliseconds, and the leader proposes the next one at once. What has fallen due comes first; then
// unfinished lines, for which a quarter is kept; then what requests bring about, each of which may do
// the allowance for its own semaphore even when the portion is used up.
const (
	portion   = 4096
	allowance = 16
)

// What can fall due of a semaphore. At a tie the earlier one here comes first: permits become free
// before a wait for them ends.
const (
	dueNothing = iota
	dueParole
	dueGrant
	dueWait
	dueRemoval
)

// upcoming returns what falls due next of m, and when.
func (m *sem) upcoming() (what int, when Time) {
	when = never
	consider := func(kind int, t Time) {
		if t < when {
			what, when = kind, t
		}
	}
	if m.rec.quarantine != nil {
		p, _ := m.rec.quarantine.Min()
		consider(dueParole, p.until)
	}
	if m.grants.len() > 0 {
		consider(dueGrant, m.grants.first().due())
	}
	if m.waiters != nil {
		consider(dueWait, m.waiters.first().due())
	}
	if m.rec.settings.idle > 0 && m.unused() && m.quarantined == 0 {
		consider(dueRemoval, m.rec.unused.plus(m.rec.settings.idle))
	}
	return what, when
}

// schedule notes when something of m falls due next. Whoever changed m calls it at the end.
func (s *State) schedule(m *sem) {
	_, next := m.upcoming()
	if next == m.next {
		return
	}
	known := m.next != never
	switch {
	case next == never:
		s.due.remove(m)
		m.next = next
	case known:
		m.next = next
		s.due.fix(m)
	default:
		m.next = next
		s.due.push(m)
	}
}

// gone says that the semaphore has been removed.
func (m *sem) gone() bool { return m.next == removed }

// removed is the next deadline of a semaphore that is no more.
const removed Time = -1

// expire processes what has fallen due, in the order of the deadlines, as far as a portion goes; then
// lines that are not served as far as they could be.
func (s *State) expire() {
	s.budget = s.portion
	for s.budget > 0 && len(s.due) > 0 && s.due[0].next <= s.now {
		s.step(s.due[0])
	}
	s.budget = max(s.budget, (s.portion+3)/4)
	for s.budget > 0 && s.work.Len() > 0 {
		_, m, _ := s.work.Min()
		s.finish(m)
	}
}

// settle processes what has fallen due of m, in order, as far as the budget goes. Afterwards m may be
// gone.
func (s *State) settle(m *sem) {
	for s.budget > 0 && !m.gone() && m.next <= s.now {
		s.step(m)
	}
}

// catchUp processes all that has fallen due of m, whatever the budget. Afterwards m may be gone.
func (s *State) catchUp(m *sem) {
	for !m.gone() && m.next <= s.now {
		s.step(m)
	}
}

// step processes the one thing of m that has been due for longest, and serves the line.
func (s *State) step(m *sem) {
	s.budget--
	what, when := m.upcoming()
	s.at = when
	switch what {
	case dueParole:
		s.parole(m)
	case dueGrant:
		s.endGrant(m, m.grants.first())
	case dueWait:
		s.endWait(m, m.waiters.first())
	case dueRemoval:
		s.stats.Removed++
		s.remove(m)
	}
	s.at = s.now
	if m.gone() {
		return
	}
	s.serve(m)
	s.schedule(m)
}

// tooLate lets a waiter leave whose wait has ended, ahead of what else is overdue of m: its holder asks
// anew, and must not find the old place.
func (s *State) tooLate(m *sem, w *waiter) {
	s.at = w.due()
	s.endWait(m, w)
	s.at = s.now
	s.serve(m)
	s.schedule(m)
}

// parole puts the permits that have been in quarantine for longest back into circulation.
func (s *State) parole(m *sem) {
	rec := s.write(m)
	p, _ := rec.quarantine.PopMin()
	if rec.quarantine.Len() == 0 {
		rec.quarantine = nil
	}
	n := width(p.slots)
	m.slots.put(p.slots)
	m.quarantined -= n
	s.stats.Quarantined -= n
	s.freed += n
	s.moves++
}

// endGrant takes out a grant whose time has come: its lease has ended, or nobody can have been told
// of it.
func (s *State) endGrant(m *sem, g *grant) {
	if g.due() < g.end {
		s.undo(m, g)
		s.freed += g.permits()
		return
	}
	s.drop(m, g)
	rec := s.write(m)
	rec.counters.expirations++
	rec.counters.heldTotal += g.end.since(g.granted)
	s.stats.Expired++
	if rec.settings.quarantine == 0 {
		m.slots.put(g.slots())
		s.freed += g.permits()
		return
	}
	if rec.quarantine == nil {
		rec.quarantine = newQuarantine()
	}
	rec.quarantine.Set(parole{g.end.plus(rec.settings.quarantine), g.token, slices.Clone(g.slots())})
	m.quarantined += g.permits()
	s.stats.Quarantined += g.permits()
	s.moves++
}

// undo takes back a grant as if it had not been made. Where it had renewed another with FRESH, that one
// stays counted, until it was fenced off: it was held.
func (s *State) undo(m *sem, g *grant) {
	s.drop(m, g)
	m.slots.put(g.slots())
	s.stats.GivenBack++
	switch counters := &s.write(m).counters; {
	case g.renewal():
		counters.renewals--
	case g.waited:
		counters.grantsWaited--
	default:
		counters.grantsImmediate--
	}
}

// endWait lets a waiter leave whose wait, or whose grace, has ended.
func (s *State) endWait(m *sem, w *waiter) {
	s.leave(m, w, w.due())
	s.write(m).counters.waitTimeouts++
	s.stats.TimedOut++
	s.tell(w, semaphore.Reply{})
}
