package check

import (
	"hash/maphash"
	"slices"
	"time"
)

// The semaphore that porcupine searches with. It does one thing at a time, and knows the grants that
// were told of, in the order of their tokens: the n-th is the n-th to be made.
//
// Time. A request takes effect within its call and return, in the order that the search tries; so a
// moment in that order is not before any call of what came earlier (state.now), nor after the return of
// the request at hand. A lease may end by itself, unseen, from the moment on at which it can first have
// ended. A grant that a later answer shows to be live has not.

// step is one answer, as the model sees it.
type step struct {
	does    effect
	call    time.Duration
	ret     time.Duration
	rank    int           // of the grant that it is about, in the order of tokens
	lease   time.Duration // it has at least this much left
	fresh   bool          // of grants: it takes the place of what its holder holds
	permits int64         // of refuses
	inUse   int64         // of counts
	hidden  int64         // permits that requests without an answer may hold at that time
}

type effect string

const (
	grants   effect = "grants"   // makes the grant
	shows    effect = "shows"    // the grant is live
	ends     effect = "ends"     // the grant was live, and is over
	denies   effect = "denies"   // the grant is over
	refuses  effect = "refuses"  // there is no room
	counts   effect = "counts"   // so many permits are in use
	nonsense effect = "nonsense" // no semaphore gives this answer
)

// fact is what is known of a grant beforehand.
type fact struct {
	holder  string
	permits int64
	slots   []int64
	lives   int           // how many answers show it live
	endedBy time.Duration // from then on a request may have ended it that nobody answered
}

// state is the semaphore between two steps. It is never changed in place.
type state struct {
	made int // grants so far
	now  time.Duration
	held []held // in the order of tokens
}

// held is a grant that has not been seen to end.
type held struct {
	rank  int
	until time.Duration // it has not ended by itself before
	seen  int           // of the answers that show it live
}

// machine steps through the history of one semaphore.
type machine struct {
	capacity int64
	largest  int64 // permits that anybody asks for: in a line, it may stand in front
	facts    []fact
}

func equal(a, b state) bool {
	return a.made == b.made && a.now == b.now && slices.Equal(a.held, b.held)
}

func hash(seed maphash.Seed, s state) uint64 {
	h := maphash.Comparable(seed, s.made) ^ maphash.Comparable(seed, s.now)
	for _, one := range s.held { // each rank occurs once
		h ^= maphash.Comparable(seed, one)
	}
	return h
}

// next are the states that an answer can leave; none if a semaphore in this state cannot give it.
func (m *machine) next(s state, at step) []state {
	s.now = max(s.now, at.call)
	if s.now > at.ret {
		return nil
	}
	switch at.does {
	case grants:
		return m.grant(s, at)
	case shows:
		return m.show(s, at)
	case ends:
		return m.end(s, at)
	case denies:
		return m.deny(s, at)
	case refuses:
		if m.permits(s.held)+at.hidden+max(at.permits, m.largest) > m.capacity {
			return []state{s}
		}
	case counts:
		if m.certain(s, at) <= at.inUse && at.inUse <= m.permits(s.held)+at.hidden {
			return []state{s}
		}
	}
	return nil
}

func (m *machine) show(s state, at step) []state {
	i := s.find(at.rank)
	if i < 0 {
		return nil
	}
	s.held = slices.Clone(s.held)
	s.held[i].seen++
	s.held[i].until = max(s.held[i].until, s.now+early(at.lease))
	return []state{s}
}

func (m *machine) end(s state, at step) []state {
	i := s.find(at.rank)
	if i < 0 || s.held[i].seen+1 < m.facts[at.rank].lives {
		return nil
	}
	s.held = slices.Delete(slices.Clone(s.held), i, i+1)
	return []state{s}
}

func (m *machine) deny(s state, at step) []state {
	if at.rank >= s.made {
		return nil
	}
	i := s.find(at.rank)
	if i < 0 {
		return []state{s}
	}
	from, mayEnd := m.mayEnd(s.held[i], at.ret)
	if !mayEnd {
		return nil
	}
	s.now = max(s.now, from)
	s.held = slices.Delete(slices.Clone(s.held), i, i+1)
	return []state{s}
}

// mayEnd is whether a grant can have ended unseen by a moment, and since when.
func (m *machine) mayEnd(h held, by time.Duration) (from time.Duration, ok bool) {
	f := m.facts[h.rank]
	from = min(h.until, f.endedBy)
	return from, h.seen == f.lives && from <= by
}

func (s state) find(rank int) int {
	return slices.IndexFunc(s.held, func(h held) bool { return h.rank == rank })
}

func (m *machine) permits(grants []held) int64 {
	var permits int64
	for _, h := range grants {
		permits += m.facts[h.rank].permits
	}
	return permits
}

// certain are the permits that must be in use at a step.
func (m *machine) certain(s state, at step) int64 {
	var permits int64
	for _, h := range s.held {
		if _, mayEnd := m.mayEnd(h, at.ret); !mayEnd {
			permits += m.facts[h.rank].permits
		}
	}
	return permits
}
