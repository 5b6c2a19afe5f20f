package fsm

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

func code(c semaphore.Code) semaphore.Reply {
	return semaphore.Reply{Err: &semaphore.Error{Code: c}}
}

func number(n int64) semaphore.Reply { return semaphore.Reply{Value: semaphore.Number(n)} }

// do executes one request.
func (m *model) do(t semaphore.Ticket, q semaphore.Request) semaphore.Reply {
	s := m.sem(q.Semaphore())
	switch q := q.(type) {
	case semaphore.Acquire:
		return m.acquire(t, s, q)
	case Rejoin:
		return m.rejoin(t, s, q)
	case semaphore.Create:
		return m.create(s, q)
	case semaphore.Scan:
		return m.scan(q)
	case semaphore.Release, semaphore.Renew, semaphore.Cancel, semaphore.Check, semaphore.Delete, Leave, GiveBack:
		if s == nil {
			return number(0)
		}
		return m.change(s, q)
	}
	if s == nil {
		return code(semaphore.CodeNoSem)
	}
	return m.change(s, q)
}

func (m *model) change(s *modelSem, q semaphore.Request) semaphore.Reply {
	switch q := q.(type) {
	case semaphore.Release:
		g := s.grant(q.Holder)
		if g == nil || q.Token != 0 && g.token != q.Token {
			return number(0)
		}
		m.dropGrant(s, g, m.now)
		s.counters.Releases++
		s.counters.HeldTotal += time.Duration(m.now-g.granted) * time.Microsecond
		m.serve(s)
		return number(1)
	case GiveBack:
		g := s.grant(q.Holder)
		if g == nil || g.token != q.Token || g.ticket != q.Ticket || g.ticket.Incarnation == 0 {
			return number(0)
		}
		m.undo(s, g, m.now)
		m.serve(s)
		return number(1)
	case semaphore.Renew:
		return m.renew(s, q)
	case semaphore.Cancel:
		return m.leave(s, s.waiter(q.Holder))
	case Leave:
		w := s.waiter(q.Holder)
		if w != nil && w.ticket != q.Ticket {
			w = nil
		}
		return m.leave(s, w)
	case semaphore.Check:
		if g := s.grant(q.Holder); g != nil && g.token == q.Token {
			return number(1)
		}
		return number(0)
	case semaphore.Reconcile:
		return number(0)
	case semaphore.Resize:
		return m.resize(s, q)
	case semaphore.Delete:
		return m.delete(s, q)
	}
	return m.list(s, q)
}

func (m *model) leave(s *modelSem, w *modelWaiter) semaphore.Reply {
	if w == nil {
		return number(0)
	}
	m.dropWaiter(s, w, m.now, m.now)
	m.tell(w, semaphore.Reply{})
	m.serve(s)
	return number(1)
}

// forbidden says that a lease asked for by name is not possible here.
func (s *modelSem) forbidden(lease time.Duration) bool {
	if lease == semaphore.Persist {
		return s.set.MaxLease.Given || s.set.MaxHold.Given
	}
	return s.set.MaxLease.Given && lease > s.set.MaxLease.Value
}

func (m *model) rejoin(t semaphore.Ticket, s *modelSem, q Rejoin) semaphore.Reply {
	if s == nil {
		return code(semaphore.CodeNoSem)
	}
	owns := func(other semaphore.Ticket) bool {
		if q.Old.Incarnation == 0 {
			return other.Incarnation == t.Incarnation
		}
		return other == q.Old
	}
	over := q.Wait == 0
	g, w := s.grant(q.Holder), s.waiter(q.Holder)
	switch {
	case g != nil && !owns(g.ticket), g == nil && w != nil && !owns(w.ticket):
		return code(semaphore.CodeSuperseded)
	case g != nil:
		g.ticket, g.undo = t, 0
		return semaphore.Reply{Value: m.told(g, t, false)}
	case w != nil && over:
		m.leave(s, w)
		return semaphore.Reply{}
	case w != nil:
		return m.takeOver(t, s, w, q.Acquire)
	case over:
		return semaphore.Reply{}
	case q.Made:
		return m.acquire(t, s, q.Acquire)
	}
	return code(semaphore.CodeUncertain)
}

func (m *model) acquire(t semaphore.Ticket, s *modelSem, q semaphore.Acquire) semaphore.Reply {
	if s == nil {
		switch {
		case !q.Create:
			return code(semaphore.CodeNoSem)
		case q.Capacity > 0 && q.Permits > q.Capacity:
			return code(semaphore.CodeTooMany)
		case len(m.sems) >= m.limits.MaxSemaphores:
			return code(semaphore.CodeInvalid)
		}
		s = m.add(q.Key, q.Capacity, semaphore.Settings{Idle: semaphore.Set(m.limits.DefaultIdle)})
		s.born = true
	}
	if g := s.grant(q.Holder); g != nil {
		return m.repeat(t, s, g, q)
	}
	if w := s.waiter(q.Holder); w != nil {
		return m.takeOver(t, s, w, q)
	}
	switch {
	case s.forbidden(q.Lease):
		return code(semaphore.CodeInvalid)
	case s.capacity > 0 && q.Permits > s.capacity:
		return code(semaphore.CodeTooMany)
	case len(s.line) == 0 && s.fits(q.Permits):
		g := &modelGrant{holder: q.Holder, label: q.Label, ticket: t}
		m.issue(s, g, q.Permits, s.leaseOf(askedLease(q.Lease), us(m.limits.DefaultLease)))
		s.counters.GrantsImmediate++
		return semaphore.Reply{Value: m.told(g, t, false)}
	case q.Wait == 0:
		s.counters.Refused++
		return semaphore.Reply{}
	case len(s.line) >= m.limits.MaxWaiters || m.waiters() >= m.limits.MaxWaitersAll:
		return code(semaphore.CodeQueueFull)
	}
	s.joins++
	w := &modelWaiter{holder: q.Holder, permits: q.Permits, joined: m.now, seq: s.joins}
	m.ask(w, t, q)
	s.line = append(s.line, w)
	return semaphore.Reply{Value: InLine{}}
}

func (m *model) ask(w *modelWaiter, t semaphore.Ticket, q semaphore.Acquire) {
	w.label, w.lease, w.fallback = q.Label, askedLease(q.Lease), us(m.limits.DefaultLease)
	w.end, w.grace, w.ticket, w.made = m.now+us(q.Wait), 0, t, q.Made
}

func (m *model) waiters() (n int) {
	for _, s := range m.sems {
		n += len(s.line)
	}
	return n
}

func (m *model) repeat(t semaphore.Ticket, s *modelSem, g *modelGrant, q semaphore.Acquire) semaphore.Reply {
	if int64(len(g.slots)) != q.Permits {
		return code(semaphore.CodeConflict)
	}
	if !q.Fresh {
		g.ticket, g.undo = semaphore.Ticket{}, 0
		return semaphore.Reply{Value: m.told(g, t, true)}
	}
	if s.forbidden(q.Lease) {
		return code(semaphore.CodeInvalid)
	}
	s.counters.Renewals++
	s.counters.HeldTotal += time.Duration(m.now-g.granted) * time.Microsecond
	s.grants = append(without(s.grants, g), g)
	g.label, g.ticket, g.undo, g.fresh = q.Label, t, 0, true
	m.date(s, g, s.leaseOf(askedLease(q.Lease), us(m.limits.DefaultLease)))
	return semaphore.Reply{Value: m.told(g, t, false)}
}

func (m *model) takeOver(t semaphore.Ticket, s *modelSem, w *modelWaiter, q semaphore.Acquire) semaphore.Reply {
	switch {
	case w.permits != q.Permits:
		return code(semaphore.CodeConflict)
	case q.Wait == 0:
		return semaphore.Reply{}
	case s.forbidden(q.Lease):
		return code(semaphore.CodeInvalid)
	}
	m.tell(w, code(semaphore.CodeSuperseded))
	m.ask(w, t, q)
	return semaphore.Reply{Value: InLine{}}
}

func (m *model) renew(s *modelSem, q semaphore.Renew) semaphore.Reply {
	if s.forbidden(q.Lease) {
		return code(semaphore.CodeInvalid)
	}
	g := s.grant(q.Holder)
	if g == nil || q.Token != 0 && g.token != q.Token {
		return number(0)
	}
	if s.set.MaxHold.Given && g.granted+us(s.set.MaxHold.Value) <= m.now {
		g.end = m.now
		m.expire(s, g)
		m.serve(s)
		return number(0)
	}
	length := askedLease(q.Lease)
	if length == 0 {
		length = g.length
	}
	m.setLease(s, g, s.leaseOf(length, 0))
	g.ticket, g.undo = semaphore.Ticket{}, 0
	s.counters.Renewals++
	if g.end < 0 {
		return number(-1)
	}
	return number(max(1, (g.end-m.now)/1000))
}

func (m *model) add(key string, capacity int64, set semaphore.Settings) *modelSem {
	m.made++
	s := &modelSem{id: m.made, name: key, capacity: capacity, set: set, unused: m.now}
	m.sems = append(m.sems, s)
	return s
}

// merge returns the settings with those given in place.
func merge(have, given semaphore.Settings) semaphore.Settings {
	for _, p := range []struct {
		have  *semaphore.Setting
		given semaphore.Setting
	}{
		{&have.Lease, given.Lease}, {&have.MaxLease, given.MaxLease}, {&have.MaxHold, given.MaxHold},
		{&have.Quarantine, given.Quarantine}, {&have.Idle, given.Idle},
	} {
		if p.given.Given {
			*p.have = p.given
		}
	}
	return have
}

func contradictory(set semaphore.Settings) bool {
	return set.Lease.Given && set.MaxLease.Given && set.Lease.Value > set.MaxLease.Value
}

func (m *model) create(s *modelSem, q semaphore.Create) semaphore.Reply {
	if contradictory(q.Settings) {
		return code(semaphore.CodeInvalid)
	}
	if s == nil {
		if len(m.sems) >= m.limits.MaxSemaphores {
			return code(semaphore.CodeInvalid)
		}
		m.add(q.Key, q.Capacity, q.Settings)
		m.last = max(m.last, q.MinToken)
		return semaphore.Reply{}
	}
	want := merge(s.set, q.Settings)
	if s.born {
		want.Idle = s.set.Idle
	}
	if !q.IfAbsent && (want != s.set || q.Capacity != s.capacity) {
		return code(semaphore.CodeConflict)
	}
	m.last = max(m.last, q.MinToken)
	if s.born {
		s.born, s.set.Idle, s.unused = false, q.Settings.Idle, m.now
	}
	return semaphore.Reply{}
}

func (m *model) resize(s *modelSem, q semaphore.Resize) semaphore.Reply {
	set := merge(s.set, q.Settings)
	if contradictory(set) {
		return code(semaphore.CodeInvalid)
	}
	s.set, s.capacity = set, q.Capacity
	if q.Settings.Idle.Given {
		s.unused = m.now
	}
	for _, w := range s.line {
		if s.capacity > 0 && w.permits > s.capacity {
			m.dropWaiter(s, w, m.now, m.now)
			m.tell(w, code(semaphore.CodeTooMany))
		}
	}
	m.serve(s)
	return semaphore.Reply{Value: s.usage()}
}

func (s *modelSem) usage() semaphore.Usage {
	return semaphore.Usage{Capacity: s.capacity, InUse: s.inUse(), Available: max(0, s.capacity-int64(len(s.taken())))}
}

func (m *model) delete(s *modelSem, q semaphore.Delete) semaphore.Reply {
	if len(s.grants) > 0 && !q.Force {
		return code(semaphore.CodeInUse)
	}
	for _, w := range s.line {
		m.tell(w, code(semaphore.CodeNoSem))
	}
	m.sems = without(m.sems, s)
	return number(1)
}

// lose marks the waiters of a lost node.
func (m *model) lose(incarnation uint64, grace time.Duration) {
	for _, s := range m.sems {
		for _, w := range s.line {
			switch {
			case w.ticket.Incarnation != incarnation || w.grace != 0:
			case w.made:
				m.dropWaiter(s, w, m.now, m.now)
			default:
				w.grace = m.now + us(grace)
			}
		}
	}
}
