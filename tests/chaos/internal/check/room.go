package check

import "slices"

// grant makes the next grant, in every way in which there can be room for it.
func (m *machine) grant(s state, at step) []state {
	if at.rank != s.made {
		return nil // tokens grow
	}
	f := m.facts[at.rank]
	var kept []held
	for _, h := range s.held {
		other := m.facts[h.rank]
		same := other.holder == f.holder
		if same && at.fresh && h.seen == other.lives {
			continue
		}
		if !same && !shared(other.slots, f.slots) {
			kept = append(kept, h)
			continue
		}
		from, mayEnd := m.mayEnd(h, at.ret)
		if !mayEnd {
			return nil
		}
		s.now = max(s.now, from)
	}
	s.made++
	var all []state
	m.makeRoom(state{s.made, s.now, kept}, at, 0, func(roomy state) {
		roomy.held = append(slices.Clone(roomy.held), held{at.rank, roomy.now + early(at.lease), 0})
		all = append(all, roomy)
	})
	return all
}

// makeRoom lets leases end that may have, in every choice of them, and stops when there is room.
func (m *machine) makeRoom(s state, at step, first int, found func(state)) {
	if m.permits(s.held)+m.facts[at.rank].permits <= m.capacity {
		found(s)
		return
	}
	for i := first; i < len(s.held); i++ {
		from, mayEnd := m.mayEnd(s.held[i], at.ret)
		if !mayEnd {
			continue
		}
		m.makeRoom(state{s.made, max(s.now, from), slices.Delete(slices.Clone(s.held), i, i+1)}, at, i, found)
	}
}
