package fsm

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// lose marks the waiters that came through a lost node. They keep their place until the grace (in
// nanoseconds) is over; those whose id was made by the server leave at once, for nobody can ask again
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
			s.tell(w.ticket, semaphore.Reply{})
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
