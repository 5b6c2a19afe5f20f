package fsm

import (
	"github.com/tidwall/btree"

	"github.com/semserver/semserver/semaphore"
)

// waiter is one place in line. As with a grant, one of an older epoch is copied before it is changed.
type waiter struct {
	text     string // the holder's id, then the label
	seq      uint64 // its place in line
	permits  int64
	lease    int64 // as asked for; 0: not named; persist: for ever
	fallback int64 // the lease where neither the request nor the semaphore names one
	joined   Time
	end      Time // of the wait
	grace    Time // 0, or when it leaves unless adopted: its node was lost
	ticket   semaphore.Ticket
	at       int32 // in sem.waiters
	epoch    uint32
	idSize   uint16
	made     bool // nobody else can know the holder's id
}

func (w *waiter) holder() string { return w.text[:w.idSize] }
func (w *waiter) label() string  { return w.text[w.idSize:] }
func (w *waiter) orphan() bool   { return w.grace != 0 }

// due is when the waiter leaves without a grant.
func (w *waiter) due() Time {
	if w.orphan() {
		return min(w.end, w.grace)
	}
	return w.end
}

func (w *waiter) before(other *waiter) bool {
	mine, its := w.due(), other.due()
	if mine != its {
		return mine < its
	}
	return w.seq < other.seq
}

func (w *waiter) latest(other *waiter) bool { return w.seq > other.seq }

func (w *waiter) place() *int32 { return &w.at }

// waiters finds those who wait. Their order is record.line.
type waiters struct {
	crowd[*waiter]
	orphans int
}

// waiter returns who waits under a holder's id, or nil.
func (m *sem) waiter(holder string) *waiter {
	if m.waiters == nil {
		return nil
	}
	return m.waiters.find(holder)
}

// stand takes a waiter into the line, at the place it names.
func (s *State) stand(m *sem, w *waiter) {
	rec := s.write(m)
	w.epoch = s.epoch
	if m.waiters == nil {
		m.waiters = new(waiters)
		rec.line = new(btree.Map[uint64, *waiter])
		s.lines.Set(rec.id, m)
	}
	rec.line.Set(w.seq, w)
	m.waiters.add(w)
	s.stats.Waiters++
	s.count(m, w, 1)
	s.moves++
}

// leave takes a waiter out of the line, however its wait ended. It is up to the caller to answer it,
// and to serve those behind it.
func (s *State) leave(m *sem, w *waiter, left Time) {
	rec := s.write(m)
	rec.line.Delete(w.seq)
	rec.counters.waitTotal += left.since(w.joined)
	m.waiters.remove(w)
	s.stats.Waiters--
	s.count(m, w, -1)
	s.moves++
	if rec.line.Len() > 0 {
		return
	}
	m.waiters, rec.line, rec.sweep = nil, nil, 0
	s.lines.Delete(rec.id)
	if m.unused() {
		rec.unused = s.at
	}
}

// count keeps the numbers of orphans, and of the others by the node through which they came.
func (s *State) count(m *sem, w *waiter, n int) {
	if w.orphan() {
		m.waiters.orphans += n
		s.stats.Orphans += int64(n)
		return
	}
	if s.waiting[w.ticket.Incarnation] += n; s.waiting[w.ticket.Incarnation] == 0 {
		delete(s.waiting, w.ticket.Incarnation)
	}
}

// amend changes a waiter: its fields, but not its place or holder.
func (s *State) amend(m *sem, w *waiter, change func(w *waiter)) *waiter {
	rec := s.write(m)
	if w.epoch != s.epoch {
		c := *w
		c.epoch = s.epoch
		m.waiters.replace(w, &c)
		rec.line.Set(c.seq, &c)
		w = &c
	}
	s.count(m, w, -1)
	change(w)
	s.count(m, w, 1)
	m.waiters.heap.fix(w)
	s.moves++
	return w
}

// serve grants to the line from its head and stops at the first waiter that does not fit: letting
// smaller requests pass would starve large ones. What the budget does not allow stays unfinished.
func (s *State) serve(m *sem) {
	for m.waiters != nil {
		_, w, _ := m.rec.line.Min()
		excessive := m.tooMany(w.permits)
		if !excessive && !m.fits(w.permits) {
			break
		}
		if s.budget <= 0 {
			s.unfinished(m)
			return
		}
		s.budget--
		if excessive {
			s.dismiss(m, w)
			continue
		}
		s.admit(m, w)
	}
	if m.rec.sweep == 0 {
		s.finished(m)
	}
}

// tooMany says that n permits are more than there will be. Capacity 0 is a pause.
func (m *sem) tooMany(n int64) bool { return m.rec.capacity > 0 && n > m.rec.capacity }

// dismiss answers a waiter that asks for more than the capacity, since a Resize.
func (s *State) dismiss(m *sem, w *waiter) {
	s.leave(m, w, s.at)
	s.tell(w, semaphore.Reply{Err: m.excessive(w.permits)})
}

// admit grants to a waiter. One whose node was lost cannot be told: unless it is adopted, the grant
// is given back at the end of the grace.
func (s *State) admit(m *sem, w *waiter) {
	s.leave(m, w, s.now)
	g := newGrant(w.holder(), w.label())
	g.ticket, g.undo, g.waited = w.ticket, w.grace, true
	s.issue(m, g, w.permits, m.rec.lease(w.lease, w.fallback))
	s.write(m).counters.grantsWaited++
	if !w.orphan() && s.wants(w.ticket.Incarnation) {
		s.tell(w, semaphore.Reply{Value: s.told(g, w.ticket, false)})
	}
}

// sweep answers the waiters that a Resize left asking for more than the capacity.
func (s *State) sweep(m *sem) {
	if m.rec.sweep == 0 {
		return
	}
	var excessive []*waiter
	from, done := m.rec.sweep, true
	m.rec.line.Ascend(from, func(seq uint64, w *waiter) bool {
		if s.budget <= 0 {
			from, done = seq, false
			return false
		}
		s.budget--
		if m.tooMany(w.permits) {
			excessive = append(excessive, w)
		}
		return true
	})
	if done {
		from = 0
	}
	s.write(m).sweep = from
	for _, w := range excessive {
		s.dismiss(m, w)
	}
	if m.rec.sweep != 0 {
		s.unfinished(m)
	}
}

// finish does what is left to do for m: what has fallen due, who wants too much, the line.
func (s *State) finish(m *sem) {
	if m.next <= s.now {
		s.schedule(m) // what was due may just have been taken away
	}
	if s.settle(m); m.gone() {
		return
	}
	s.sweep(m)
	if s.schedule(m); m.next <= s.now && m.waiters != nil {
		s.unfinished(m) // those for whom it is too late leave first
		return
	}
	s.serve(m)
	s.schedule(m)
}
