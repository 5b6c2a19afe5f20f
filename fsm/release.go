package fsm

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

func (s *State) release(q *semaphore.Release) semaphore.Reply {
	m, g := s.held(q.Key, q.Holder, q.Token)
	if g == nil {
		return no()
	}
	s.drop(m, g)
	m.slots.put(g.slots())
	rec := s.write(m)
	rec.counters.releases++
	rec.counters.heldTotal += s.now.since(g.granted)
	s.stats.Released++
	s.finish(m)
	return yes()
}

// giveBack takes back a grant that was never told to its client.
func (s *State) giveBack(q *GiveBack) semaphore.Reply {
	m, g := s.held(q.Key, q.Holder, q.Token)
	if g == nil || g.token != q.Token || g.ticket != q.Ticket || q.Ticket == (semaphore.Ticket{}) {
		return no()
	}
	s.undo(m, g)
	s.finish(m)
	return yes()
}

// renew sets a lease from now. Where MAXHOLD, set lower since the grant was made, leaves nothing of
// it, the lease ends now, as if it had run out: the answer 0 always means that nothing is held.
func (s *State) renew(q *semaphore.Renew) semaphore.Reply {
	m, g := s.held(q.Key, q.Holder, q.Token)
	if m == nil {
		return no()
	}
	if err := m.rec.admits(q.Lease); err != nil {
		return refuse(err)
	}
	if g == nil {
		return no()
	}
	length := g.length
	if q.Lease != 0 {
		length = asked(q.Lease)
	}
	length = m.rec.cut(length)
	end := m.rec.leaseEnd(g.granted, s.now, length)
	if end <= s.now {
		s.edit(m, g, func(g *grant) { g.end = s.now })
		s.schedule(m)
		s.finish(m)
		return no()
	}
	s.edit(m, g, func(g *grant) {
		adopt(g)
		g.length, g.end = length, end
	})
	s.write(m).counters.renewals++
	s.stats.Renewed++
	s.schedule(m)
	if !s.replies {
		return semaphore.Reply{}
	}
	return semaphore.Reply{Value: inForce(end, s.now)}
}

// inForce is what is left of a lease in milliseconds, -1 where it does not end. A live lease
// is never 0, which would mean that nothing is held.
func inForce(end, now Time) semaphore.Number {
	if end == never {
		return -1
	}
	return max(1, semaphore.Number(end.since(now)/int64(time.Millisecond/time.Microsecond)))
}

// held returns the semaphore, or nil, and the live grant of a holder under that token (0: whichever),
// or nil.
func (s *State) held(key, holder string, token int64) (*sem, *grant) {
	m := s.current(key)
	if m == nil {
		return nil, nil
	}
	g := m.live(holder, s.now)
	if g != nil && token != 0 && g.token != token {
		return m, nil
	}
	return m, g
}

// cancel lets a holder's request leave the line, if ticket is nil or names that request. It is
// answered with no permit.
func (s *State) cancel(key, holder string, ticket *semaphore.Ticket) semaphore.Reply {
	m := s.current(key)
	if m == nil {
		return no()
	}
	w := m.waiter(holder)
	if w == nil || ticket != nil && w.ticket != *ticket {
		return no()
	}
	s.leave(m, w, s.now)
	s.tell(w, semaphore.Reply{})
	s.finish(m)
	return yes()
}

// reconcile processes what is overdue of a semaphore, as far as a portion goes, and answers how many
// permits that put back. Nothing else can be out of balance here: free permits are not stored but
// computed.
func (s *State) reconcile(key string) semaphore.Reply {
	s.freed = 0
	m := s.current(key)
	if m == nil {
		return refuse(semaphore.ErrNoSemaphore)
	}
	s.finish(m)
	if s.freed > 0 {
		s.write(m).counters.reconciled += s.freed
		s.stats.Reconciled += s.freed
	}
	return semaphore.Reply{Value: semaphore.Number(s.freed)}
}
