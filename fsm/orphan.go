package fsm

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// lose marks the waiters that came through a lost node. They keep their place until the grace (in
// nanoseconds) is over; those whose id was made by the server leave at once, for no client can ask again
// under it.
func (s *State) lose(incarnation uint64, grace int64) {
	if s.waiting[incarnation] == 0 {
		return
	}
	until := s.now.plus(max(1, micros(time.Duration(grace))))
	var lines []*sem
	s.lines.Scan(func(_ uint64, m *sem) bool {
		lines = append(lines, m)
		return true
	})
	for _, m := range lines {
		s.loseIn(m, incarnation, until)
	}
}

func (s *State) loseIn(m *sem, incarnation uint64, until Time) {
	var lost []*waiter
	m.rec.line.Scan(func(_ uint64, w *waiter) bool {
		if w.ticket.Incarnation == incarnation && !w.orphan() {
			lost = append(lost, w)
		}
		return true
	})
	if len(lost) == 0 {
		return
	}
	for _, w := range lost {
		if w.made {
			s.leave(m, w, s.now)
			continue
		}
		s.amend(m, w, func(w *waiter) { w.grace = until })
	}
	// Those behind who left are served after what is overdue, which may serve them already.
	if m.waiters != nil {
		s.unfinished(m)
	}
	s.schedule(m)
}

// rejoin asks again for what a lost node's client waited for. The node itself does so when it was given
// up although it lives: its client never left. Where neither the place nor the grant is there any more,
// somebody may have cancelled it, so it does not enter the line anew, unless nobody else knows its id.
func (s *State) rejoin(q *Rejoin) semaphore.Reply {
	m := s.current(q.Key)
	if m == nil {
		return refuse(semaphore.ErrNoSemaphore)
	}
	if g := m.live(q.Holder, s.now); g != nil {
		return s.reclaim(m, g, q)
	}
	w := m.waiter(q.Holder)
	gone := w == nil || w.due() <= s.now
	switch {
	case gone && q.Wait <= 0:
		return semaphore.Reply{}
	case gone && q.Made:
		return s.acquire(&q.Acquire)
	case gone:
		return refuse(semaphore.Uncertain(q.Holder))
	case !q.owns(w.ticket, s.ticket):
		return refuse(semaphore.ErrSuperseded)
	case q.Wait > 0:
		return s.takeOver(m, w, &q.Acquire)
	}
	s.cancel(q.Key, q.Holder, &w.ticket)
	return semaphore.Reply{}
}

// reclaim tells of a grant that was made before its node could ask again.
func (s *State) reclaim(m *sem, g *grant, q *Rejoin) semaphore.Reply {
	if !q.owns(g.ticket, s.ticket) {
		return refuse(semaphore.ErrSuperseded)
	}
	s.edit(m, g, func(g *grant) { g.ticket, g.undo = s.ticket, 0 })
	s.schedule(m)
	return s.granted(m.grants.find(q.Holder), false)
}

// owns reports whether a ticket is that of the request that is repeated, by whoever has the ticket now.
func (q *Rejoin) owns(t, now semaphore.Ticket) bool {
	if q.Old == (semaphore.Ticket{}) {
		return t.Incarnation == now.Incarnation
	}
	return t == q.Old
}
