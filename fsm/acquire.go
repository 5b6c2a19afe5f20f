package fsm

import (
	"github.com/semserver/semserver/semaphore"
)

func (s *State) acquire(a *semaphore.Acquire) semaphore.Reply {
	if err := wellFormed(a); err != nil {
		return refuse(err)
	}
	m := s.current(a.Key)
	if m == nil {
		return s.acquireNew(a)
	}
	if g := m.live(a.Holder, s.now); g != nil {
		return s.repeat(m, g, a)
	}
	if w := m.waiter(a.Holder); w != nil {
		if w.due() > s.now {
			return s.takeOver(m, w, a)
		}
		s.tooLate(m, w)
	}
	if err := m.rec.admits(a.Lease); err != nil {
		return refuse(err)
	}
	if m.tooMany(a.Permits) {
		return refuse(m.excessive(a.Permits))
	}
	if m.waiters == nil && s.clear(m, a) {
		return s.grantNow(m, a)
	}
	if a.Wait > 0 {
		return s.join(m, a)
	}
	s.write(m).counters.refused++
	s.stats.Refused++
	return semaphore.Reply{}
}

// wellFormed guards against what no server sends: numbers that the books cannot carry.
func wellFormed(a *semaphore.Acquire) *semaphore.Error {
	if a.Permits < 1 || a.Permits > semaphore.MaxCapacity {
		return semaphore.Errorf(semaphore.CodeInvalid, "PERMITS must be 1 to %d, not %d", int64(semaphore.MaxCapacity), a.Permits)
	}
	if a.Lease < 0 && a.Lease != semaphore.Persist {
		return semaphore.Errorf(semaphore.CodeInvalid, "LEASE must not be negative")
	}
	if a.Create {
		return capacityError(a.Capacity)
	}
	return nil
}

// current returns a semaphore with what is overdue processed, as far as the budget goes, or nil.
func (s *State) current(key string) *sem {
	m := s.byName[key]
	if m == nil || m.next > s.now {
		return m
	}
	if s.settle(m); m.gone() {
		return nil
	}
	return m
}

// clear says whether the permits asked for are free. Where the budget was too small for all that is
// overdue, and the request cannot wait for the rest, it processes what its answer needs.
func (s *State) clear(m *sem, a *semaphore.Acquire) bool {
	if m.fits(a.Permits) || m.next > s.now {
		return m.fits(a.Permits)
	}
	if a.Wait > 0 && s.full(m) == nil {
		return false
	}
	if over := s.overdue(m); a.Permits > m.usage(over).Available {
		return false
	}
	for !m.fits(a.Permits) {
		s.step(m)
	}
	return true
}

// acquireNew makes the semaphore that the request names, if it may.
func (s *State) acquireNew(a *semaphore.Acquire) semaphore.Reply {
	if !a.Create {
		return refuse(semaphore.ErrNoSemaphore)
	}
	if a.Capacity > 0 && a.Permits > a.Capacity {
		return refuse(excess(a.Permits, a.Capacity))
	}
	if err := s.roomForSemaphore(); err != nil {
		return refuse(err)
	}
	m := s.make(a.Key, a.Capacity, settings{idle: max(0, micros(s.limits.DefaultIdle))})
	m.rec.born = true
	return s.acquire(a)
}

func (s *State) grantNow(m *sem, a *semaphore.Acquire) semaphore.Reply {
	g := newGrant(a.Holder, a.Label)
	g.ticket = s.ticket
	s.issue(m, g, a.Permits, m.rec.lease(asked(a.Lease), micros(s.limits.DefaultLease)))
	s.write(m).counters.grantsImmediate++
	s.schedule(m)
	return s.granted(g, false)
}

// issue makes a grant: token, slots and lease, from now.
func (s *State) issue(m *sem, g *grant, permits, length int64) {
	g.occupy(m.slots.take(permits, g.one[:0]))
	s.date(m, g, length)
	s.hold(m, g)
	s.stats.Granted++
}

// date gives a grant a new token and a lease from now.
func (s *State) date(m *sem, g *grant, length int64) {
	s.last = max(s.last+1, s.wall)
	s.write(m).last = s.last
	g.token, g.granted, g.length = s.last, s.now, length
	g.end = m.rec.leaseEnd(s.now, s.now, length)
}

// granted is the reply that tells the asker of a grant.
func (s *State) granted(g *grant, replayed bool) semaphore.Reply {
	if !s.replies {
		return semaphore.Reply{}
	}
	return semaphore.Reply{Value: s.told(g, s.ticket, replayed)}
}

// repeat answers a holder that holds already: with what it holds or, if it asked for that, with the
// same permits under a new token and a new lease. Whichever: the grant has been told now.
func (s *State) repeat(m *sem, g *grant, a *semaphore.Acquire) semaphore.Reply {
	if held := g.permits(); held != a.Permits {
		return refuse(semaphore.Errorf(semaphore.CodeConflict,
			"this holder has %d permits under token %d; it cannot ask for %d beside them", held, g.token, a.Permits))
	}
	if !a.Fresh {
		if g.ticket != (semaphore.Ticket{}) || g.undo != 0 {
			s.edit(m, g, adopt)
			s.schedule(m)
		}
		return s.granted(m.grants.find(a.Holder), true)
	}
	if err := m.rec.admits(a.Lease); err != nil {
		return refuse(err)
	}
	return s.refresh(m, g, a)
}

// adopt notes that somebody has been told of the grant: it is not given back as undelivered.
func adopt(g *grant) { g.ticket, g.undo = semaphore.Ticket{}, 0 }

// refresh puts a new grant in the place of one, with its permits and slots.
func (s *State) refresh(m *sem, g *grant, a *semaphore.Acquire) semaphore.Reply {
	s.drop(m, g)
	fresh := newGrant(a.Holder, a.Label)
	fresh.one, fresh.more = g.one, g.more
	fresh.ticket, fresh.undo = s.ticket, never
	s.date(m, fresh, m.rec.lease(asked(a.Lease), micros(s.limits.DefaultLease)))
	s.hold(m, fresh)
	rec := s.write(m)
	rec.counters.renewals++
	rec.counters.heldTotal += s.now.since(g.granted)
	s.stats.Renewed++
	s.schedule(m)
	return s.granted(fresh, false)
}

// full says why nobody more can stand in line, or nil.
func (s *State) full(m *sem) *semaphore.Error {
	if m.waiters != nil && m.rec.line.Len() >= s.limits.MaxWaiters || s.limits.MaxWaiters < 1 {
		return semaphore.Errorf(semaphore.CodeQueueFull, "this line is as long as --max-waiters allows: %d", s.limits.MaxWaiters)
	}
	if s.stats.Waiters >= int64(s.limits.MaxWaitersAll) {
		return semaphore.Errorf(semaphore.CodeQueueFull, "all lines together are as long as they may be: %d", s.limits.MaxWaitersAll)
	}
	return nil
}

// join puts a request at the end of the line.
func (s *State) join(m *sem, a *semaphore.Acquire) semaphore.Reply {
	if err := s.full(m); err != nil {
		return refuse(err)
	}
	rec := s.write(m)
	rec.joins++
	w := &waiter{
		text: joined(a.Holder, a.Label), idSize: uint16(len(a.Holder)),
		seq: rec.joins, permits: a.Permits, joined: s.now,
	}
	s.ask(w, a)
	s.stand(m, w)
	s.schedule(m)
	return semaphore.Reply{Value: InLine{}}
}

// ask gives a place in line what the request that stands there wants.
func (s *State) ask(w *waiter, a *semaphore.Acquire) {
	w.lease, w.fallback = asked(a.Lease), micros(s.limits.DefaultLease)
	w.end, w.grace = s.now.plus(micros(a.Wait)), 0
	w.ticket, w.made = s.ticket, a.Made
}

// takeOver lets a newer request of the same holder stand in the place of an older one.
func (s *State) takeOver(m *sem, w *waiter, a *semaphore.Acquire) semaphore.Reply {
	if w.permits != a.Permits {
		return refuse(semaphore.Errorf(semaphore.CodeConflict,
			"this holder stands in line for %d permits; it cannot ask for %d beside them", w.permits, a.Permits))
	}
	if a.Wait <= 0 {
		return semaphore.Reply{}
	}
	if err := m.rec.admits(a.Lease); err != nil {
		return refuse(err)
	}
	s.tell(w, semaphore.Reply{Err: semaphore.ErrSuperseded})
	s.amend(m, w, func(w *waiter) {
		w.text = joined(a.Holder, a.Label)
		s.ask(w, a)
	})
	s.schedule(m)
	return semaphore.Reply{Value: InLine{}}
}

// excessive is the refusal of more permits than the capacity.
func (m *sem) excessive(permits int64) *semaphore.Error { return excess(permits, m.rec.capacity) }

func excess(permits, capacity int64) *semaphore.Error {
	return semaphore.Errorf(semaphore.CodeTooMany, "%d permits asked for, and the capacity is %d", permits, capacity)
}
