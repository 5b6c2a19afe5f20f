package fsm

import "github.com/semserver/semserver/semaphore"

// create makes a semaphore, or confirms one: then nothing that it was asked for differs from what is
// stored, except that one made by an Acquire becomes permanent.
func (s *State) create(q *semaphore.Create) semaphore.Reply {
	if err := capacityError(q.Capacity); err != nil {
		return refuse(err)
	}
	if q.MinToken < 0 || q.MinToken > semaphore.MaxMinToken {
		return refuse(semaphore.Errorf(semaphore.CodeInvalid, "MINTOKEN must be 0 to %d, not %d", int64(semaphore.MaxMinToken), q.MinToken))
	}
	given, err := settings{}.changed(q.Settings)
	if err != nil {
		return refuse(err)
	}
	m := s.current(q.Key)
	if m == nil {
		if err := s.roomForSemaphore(); err != nil {
			return refuse(err)
		}
		s.make(q.Key, q.Capacity, given)
		s.last = max(s.last, q.MinToken)
		return semaphore.Reply{}
	}
	if !q.IfAbsent && !m.rec.agrees(q) {
		return refuse(semaphore.Errorf(semaphore.CodeConflict,
			"this semaphore exists with CAPACITY %d%s", m.rec.capacity, m.rec.settings))
	}
	s.last = max(s.last, q.MinToken)
	if m.rec.born {
		rec := s.write(m)
		rec.born, rec.settings.idle, rec.unused = false, given.idle, s.now
		s.schedule(m)
	}
	return semaphore.Reply{}
}

// agrees says that what a Create gives is what is stored. The IDLE of a semaphore that an Acquire
// made was nobody's wish, and contradicts nobody.
func (r *record) agrees(q *semaphore.Create) bool {
	given := q.Settings
	if r.born {
		given.Idle = semaphore.Setting{}
	}
	same, err := r.settings.changed(given)
	return err == nil && same == r.settings && q.Capacity == r.capacity
}

func (s *State) roomForSemaphore() *semaphore.Error {
	if len(s.byName) < s.limits.MaxSemaphores {
		return nil
	}
	return semaphore.Errorf(semaphore.CodeInvalid, "there are %d semaphores, and --max-semaphores is %d", len(s.byName), s.limits.MaxSemaphores)
}

// resize changes the capacity and the settings that are given, and serves the line. It takes nothing
// from anybody who holds.
func (s *State) resize(q *semaphore.Resize) semaphore.Reply {
	if err := capacityError(q.Capacity); err != nil {
		return refuse(err)
	}
	m := s.current(q.Key)
	if m == nil {
		return refuse(semaphore.ErrNoSemaphore)
	}
	changed, err := m.rec.settings.changed(q.Settings)
	if err != nil {
		return refuse(err)
	}
	if changed.quarantine != m.rec.settings.quarantine {
		// A lease that has ended is quarantined as was set when it ended. This one case knows no
		// portion; it takes an operator's command in the midst of a backlog.
		if s.catchUp(m); m.gone() {
			return refuse(semaphore.ErrNoSemaphore)
		}
	}
	rec := s.write(m)
	before := rec.capacity
	rec.capacity, rec.settings = q.Capacity, changed
	s.moves++
	if q.Settings.Idle.Given {
		// A new IDLE counts from here: the semaphore must not vanish under who has just set it.
		rec.unused = s.now
	}
	switch {
	case m.waiters == nil || q.Capacity == 0:
		rec.sweep = 0
	case q.Capacity < before || before == 0:
		rec.sweep = 1
	}
	s.finish(m)
	if !s.replies {
		return semaphore.Reply{}
	}
	return semaphore.Reply{Value: m.usage(s.overdue(m))}
}

// delete removes a semaphore and sends its waiters away.
func (s *State) delete(q *semaphore.Delete) semaphore.Reply {
	m := s.current(q.Key)
	if m == nil {
		return no()
	}
	if !q.Force && int64(m.grants.len()) > s.overdue(m).grants {
		return refuse(semaphore.ErrInUse)
	}
	for m.waiters != nil {
		_, w, _ := m.rec.line.Min()
		s.leave(m, w, s.now)
		s.tell(w, semaphore.Reply{Err: semaphore.ErrNoSemaphore})
	}
	s.remove(m)
	return yes()
}
