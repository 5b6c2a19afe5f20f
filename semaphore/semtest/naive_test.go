package semtest

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// naive is the contract written down in the plainest way: lists, walked from end to end under one
// lock, and a goroutine that looks at the clock all the time. The suite is tried out on it.
type naive struct {
	mu     sync.Mutex
	sems   []*naiveSem // in order of creation
	born   uint64
	token  int64
	ticket uint64
	flaw   flaw
	stop   chan struct{}
	done   chan struct{}
}

type naiveSem struct {
	id        uint64
	key       string
	capacity  int64
	settings  semaphore.Settings
	temporary bool
	used      time.Time
	lastToken int64
	grants    []*naiveGrant // in order of tokens
	ended     []*naiveGrant // in quarantine
	line      []*naiveWaiter
	counters  semaphore.Counters
}

type naiveGrant struct {
	semaphore.Grant
	label    string
	at       time.Time
	end      time.Time // of the lease; of the quarantine, once that has ended. Zero: never
	lastSpan time.Duration
}

type naiveWaiter struct {
	id     uint64
	ask    semaphore.Acquire
	since  time.Time
	end    time.Time
	ticket semaphore.Ticket
	done   chan semaphore.Reply
}

func newNaive(f flaw) *naive {
	n := &naive{flaw: f, stop: make(chan struct{}), done: make(chan struct{})}
	go n.tick()
	return n
}

func (n *naive) close() {
	close(n.stop)
	<-n.done
}

func (n *naive) tick() {
	defer close(n.done)
	clock := time.NewTicker(time.Millisecond)
	defer clock.Stop()
	for {
		select {
		case <-n.stop:
			return
		case <-clock.C:
			n.mu.Lock()
			n.expire(time.Now())
			n.mu.Unlock()
		}
	}
}

func (n *naive) Do(requests []semaphore.Request) []semaphore.Reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	replies := make([]semaphore.Reply, len(requests))
	for i, r := range requests {
		now := time.Now()
		n.expire(now)
		value, err := n.decide(r, now)
		replies[i] = semaphore.Reply{Value: value, Err: err}
	}
	return replies
}

func (n *naive) GiveBack(key string, g *semaphore.Grant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.find(key)
	if s == nil {
		return
	}
	i := s.holding(g.Holder, g.Token)
	if i < 0 || s.grants[i].Ticket != g.Ticket && n.flaw != "give-back ignores the ticket" {
		return
	}
	s.grants = slices.Delete(s.grants, i, i+1)
	n.serve(s, time.Now())
}

func (n *naive) find(key string) *naiveSem {
	for _, s := range n.sems {
		if s.key == key {
			return s
		}
	}
	return nil
}

// early is how much too soon leases and waits end.
func (n *naive) early() time.Duration {
	if n.flaw == "leases end early" {
		return 20 * time.Millisecond
	}
	return 0
}

// expire ends whatever is due.
func (n *naive) expire(now time.Time) {
	for _, s := range slices.Clone(n.sems) {
		n.expireOne(s, now)
	}
}

func (n *naive) expireOne(s *naiveSem, now time.Time) {
	due := func(end time.Time) bool { return !end.IsZero() && !now.Before(end.Add(-n.early())) }
	s.ended = slices.DeleteFunc(s.ended, func(g *naiveGrant) bool { return due(g.end) })
	s.grants = slices.DeleteFunc(s.grants, func(g *naiveGrant) bool {
		if !due(g.end) {
			return false
		}
		s.counters.Expirations++
		s.counters.HeldTotal += g.end.Sub(g.at)
		s.used = now
		if s.settings.Quarantine.Given {
			g.end = g.end.Add(s.settings.Quarantine.Value)
			s.ended = append(s.ended, g)
		}
		return true
	})
	n.serve(s, now)
	s.line = slices.DeleteFunc(s.line, func(w *naiveWaiter) bool {
		if !due(w.end) {
			return false
		}
		s.counters.WaitTimeouts++
		s.counters.WaitTotal += now.Sub(w.since)
		s.used = now
		w.done <- semaphore.Reply{}
		return true
	})
	n.serve(s, now)
	unused := len(s.grants) == 0 && len(s.line) == 0 && len(s.ended) == 0
	if s.settings.Idle.Given && unused && now.Sub(s.used) >= s.settings.Idle.Value {
		n.sems = slices.DeleteFunc(n.sems, func(o *naiveSem) bool { return o == s })
	}
}

// serve grants to the line from its head, as far as permits go.
func (n *naive) serve(s *naiveSem, now time.Time) {
	for i := 0; i < len(s.line); {
		w := s.line[i]
		if s.capacity > 0 && w.ask.Permits > s.capacity {
			w.done <- semaphore.Reply{Err: semaphore.Errorf(semaphore.CodeTooMany, "more than the capacity %d", s.capacity)}
			s.line = slices.Delete(s.line, i, i+1)
			continue
		}
		if w.ask.Permits > s.usage().Available {
			if n.flaw != "small requests overtake" {
				return
			}
			i++
			continue
		}
		s.line = slices.Delete(s.line, i, i+1)
		s.counters.GrantsWaited++
		s.counters.WaitTotal += now.Sub(w.since)
		g := n.grant(s, w.ask, w.ticket, now)
		w.done <- semaphore.Reply{Value: g}
	}
}

func (n *naive) nextToken(s *naiveSem, now time.Time) int64 {
	if n.flaw == "tokens start anew with the semaphore" {
		n.token = s.lastToken
	}
	n.token = max(n.token+1, now.UnixMicro()-now.UnixMicro()%time.Minute.Microseconds())
	s.lastToken = n.token
	return n.token
}

func (n *naive) grant(s *naiveSem, r semaphore.Acquire, ticket semaphore.Ticket, now time.Time) *semaphore.Grant {
	g := &naiveGrant{at: now, label: r.Label}
	if n.flaw == "leases start at the request" && r.Wait > 0 {
		now = now.Add(-150 * time.Millisecond)
	}
	g.Grant = semaphore.Grant{Holder: r.Holder, Token: n.nextToken(s, now), Slots: s.lowest(r.Permits), Ticket: ticket}
	s.grants = append(s.grants, g)
	g.lease(s, r.Lease, now)
	answer := g.Grant
	answer.Lease = g.left(now)
	return &answer
}

// lease sets the end of a grant, counted from now.
func (g *naiveGrant) lease(s *naiveSem, span time.Duration, now time.Time) {
	if span == 0 {
		span = semaphore.DefaultLimits().DefaultLease
		if s.settings.Lease.Given {
			span = s.settings.Lease.Value
		}
		if s.settings.MaxLease.Given {
			span = min(span, s.settings.MaxLease.Value)
		}
	}
	g.lastSpan = span
	g.end = time.Time{}
	if span == semaphore.Persist {
		return
	}
	g.end = now.Add(span)
	if hold := s.settings.MaxHold; hold.Given && g.end.After(g.at.Add(hold.Value)) {
		g.end = g.at.Add(hold.Value)
	}
}

func (g *naiveGrant) left(now time.Time) time.Duration {
	if g.end.IsZero() {
		return semaphore.Persist
	}
	return g.end.Sub(now)
}

func (s *naiveSem) holding(holder string, token int64) int {
	return slices.IndexFunc(s.grants, func(g *naiveGrant) bool {
		return g.Holder == holder && (token == 0 || g.Token == token)
	})
}

func (s *naiveSem) waiting(holder string) int {
	return slices.IndexFunc(s.line, func(w *naiveWaiter) bool { return w.ask.Holder == holder })
}

func (s *naiveSem) usage() semaphore.Usage {
	inUse, quarantined := s.held(s.grants), s.held(s.ended)
	return semaphore.Usage{Capacity: s.capacity, InUse: inUse, Available: max(0, s.capacity-inUse-quarantined)}
}

func (s *naiveSem) held(grants []*naiveGrant) int64 {
	n := int64(0)
	for _, g := range grants {
		n += slotCount(g.Slots)
	}
	return n
}

// taken lists the slots that are out of circulation, in growing order.
func (s *naiveSem) taken() []semaphore.Range {
	var taken []semaphore.Range
	for _, g := range slices.Concat(s.grants, s.ended) {
		taken = append(taken, g.Slots...)
	}
	slices.SortFunc(taken, func(a, b semaphore.Range) int { return cmp.Compare(a.First, b.First) })
	return taken
}

// lowest finds the lowest free slots.
func (s *naiveSem) lowest(permits int64) []semaphore.Range {
	var free []semaphore.Range
	next := int64(0)
	for _, t := range append(s.taken(), semaphore.Range{First: 1 << 62, Last: 1 << 62}) {
		if n := min(permits, t.First-next); n > 0 {
			free = append(free, semaphore.Range{First: next, Last: next + n - 1})
			permits -= n
		}
		next = t.Last + 1
	}
	return free
}
