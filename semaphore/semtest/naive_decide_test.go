package semtest

import (
	"slices"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// decide carries out one request; what was due has been ended.
func (n *naive) decide(r semaphore.Request, now time.Time) (any, error) {
	s := n.find(r.Semaphore())
	switch r := r.(type) {
	case semaphore.Create:
		return nil, n.create(s, r, now)
	case semaphore.Acquire:
		return n.acquire(s, r, now)
	case semaphore.Scan:
		return n.scan(r), nil
	}
	if s == nil {
		return unknown(r)
	}
	switch r := r.(type) {
	case semaphore.Release:
		return n.release(s, r, now), nil
	case semaphore.Renew:
		return n.renew(s, r, now)
	case semaphore.Cancel:
		return n.leave(s, s.waiting(r.Holder), now), nil
	case semaphore.Check:
		return truth(s.holding(r.Holder, r.Token) >= 0), nil
	case semaphore.Reconcile:
		return semaphore.Number(0), nil
	case semaphore.Resize:
		return n.resize(s, r, now)
	case semaphore.Inspect:
		return s.info(now), nil
	case semaphore.Holders:
		return s.holders(r, now), nil
	case semaphore.Waiters:
		return s.waiters(r, now), nil
	case semaphore.Delete:
		return n.remove(s, r)
	}
	return nil, semaphore.Errorf(semaphore.CodeInvalid, "unknown request %T", r)
}

func unknown(r semaphore.Request) (any, error) {
	switch r.(type) {
	case semaphore.Release, semaphore.Renew, semaphore.Cancel, semaphore.Check, semaphore.Delete:
		return semaphore.Number(0), nil
	}
	return nil, semaphore.ErrNoSemaphore
}

func truth(is bool) semaphore.Number {
	if is {
		return 1
	}
	return 0
}

func (n *naive) create(s *naiveSem, r semaphore.Create, now time.Time) error {
	if s == nil {
		if contradictory(r.Settings) {
			return semaphore.Errorf(semaphore.CodeInvalid, "LEASE is above MAXLEASE")
		}
		n.born++
		n.sems = append(n.sems, &naiveSem{id: n.born, key: r.Key, capacity: r.Capacity, settings: r.Settings, used: now})
		n.token = max(n.token, r.MinToken)
		return nil
	}
	if r.IfAbsent {
		return nil
	}
	stored := s.settings
	if s.temporary {
		stored.Idle = semaphore.Setting{}
	}
	if r.Capacity != s.capacity || given(stored, r.Settings) != stored {
		return semaphore.Errorf(semaphore.CodeConflict, "capacity is %d", s.capacity)
	}
	s.settings, s.temporary = stored, false
	return nil
}

// given overlays stored settings with those that are given.
func given(stored, changes semaphore.Settings) semaphore.Settings {
	for _, pair := range []struct{ to, from *semaphore.Setting }{
		{&stored.Lease, &changes.Lease}, {&stored.MaxLease, &changes.MaxLease}, {&stored.MaxHold, &changes.MaxHold},
		{&stored.Quarantine, &changes.Quarantine}, {&stored.Idle, &changes.Idle},
	} {
		if pair.from.Given {
			*pair.to = *pair.from
		}
	}
	return stored
}

func contradictory(s semaphore.Settings) bool {
	return s.Lease.Given && s.MaxLease.Given && s.Lease.Value > s.MaxLease.Value
}

func (s *naiveSem) admits(lease time.Duration) error {
	most, hold := s.settings.MaxLease, s.settings.MaxHold
	if lease == semaphore.Persist && (most.Given || hold.Given) || most.Given && lease > most.Value {
		return semaphore.Errorf(semaphore.CodeInvalid, "LEASE is above what this semaphore allows")
	}
	return nil
}

func (n *naive) acquire(s *naiveSem, r semaphore.Acquire, now time.Time) (any, error) {
	if s == nil && !r.Create {
		return nil, semaphore.ErrNoSemaphore
	}
	if s == nil {
		if r.Permits > r.Capacity && r.Capacity > 0 {
			return nil, semaphore.Errorf(semaphore.CodeTooMany, "more than the capacity %d", r.Capacity)
		}
		n.born++
		s = &naiveSem{id: n.born, key: r.Key, capacity: r.Capacity, temporary: true, used: now}
		s.settings.Idle = semaphore.Set(semaphore.DefaultLimits().DefaultIdle)
		n.sems = append(n.sems, s)
	}
	if err := s.admits(r.Lease); err != nil {
		return nil, err
	}
	n.ticket++
	ticket := semaphore.Ticket{Incarnation: 1, Number: n.ticket}
	if i := s.holding(r.Holder, 0); i >= 0 && n.flaw != "a repeat takes another permit" {
		return n.repeat(s, s.grants[i], r, ticket, now)
	}
	if s.capacity > 0 && r.Permits > s.capacity {
		return nil, semaphore.Errorf(semaphore.CodeTooMany, "more than the capacity %d", s.capacity)
	}
	if i := s.waiting(r.Holder); i >= 0 {
		return n.takeOver(s.line[i], r, ticket, now)
	}
	if len(s.line) == 0 && r.Permits <= s.usage().Available {
		s.counters.GrantsImmediate++
		return n.grant(s, r, ticket, now), nil
	}
	if r.Wait == 0 {
		s.counters.Refused++
		return nil, nil
	}
	if len(s.line) >= semaphore.DefaultLimits().MaxWaiters {
		return nil, semaphore.ErrQueueFull
	}
	w := &naiveWaiter{id: n.ticket, ask: r, since: now, end: now.Add(r.Wait), ticket: ticket, done: make(chan semaphore.Reply, 1)}
	s.line = append(s.line, w)
	return n.waiting(s, w, ticket), nil
}

func (n *naive) repeat(s *naiveSem, g *naiveGrant, r semaphore.Acquire, ticket semaphore.Ticket, now time.Time) (any, error) {
	if slotCount(g.Slots) != r.Permits {
		return nil, semaphore.Errorf(semaphore.CodeConflict, "holds %d permits", slotCount(g.Slots))
	}
	g.Ticket = semaphore.Ticket{}
	answer := g.Grant
	answer.Replayed = !r.Fresh
	if r.Fresh {
		g.Token, g.Ticket, g.at = n.nextToken(s, now), ticket, now
		g.lease(s, r.Lease, now)
		s.counters.GrantsImmediate++
		answer = g.Grant
	}
	answer.Lease = g.left(now)
	return &answer, nil
}

func (n *naive) takeOver(w *naiveWaiter, r semaphore.Acquire, ticket semaphore.Ticket, now time.Time) (any, error) {
	if w.ask.Permits != r.Permits {
		return nil, semaphore.Errorf(semaphore.CodeConflict, "waits for %d permits", w.ask.Permits)
	}
	if r.Wait == 0 {
		return nil, nil
	}
	if n.flaw == "a repeat keeps the older lease" {
		r.Lease = w.ask.Lease
	}
	w.done <- semaphore.Reply{Err: semaphore.ErrSuperseded}
	w.ask, w.ticket, w.end, w.done = r, ticket, now.Add(r.Wait), make(chan semaphore.Reply, 1)
	return n.waiting(n.find(r.Key), w, ticket), nil
}

func (n *naive) waiting(s *naiveSem, w *naiveWaiter, ticket semaphore.Ticket) *semaphore.Waiting {
	place := func() int { return slices.IndexFunc(s.line, func(w *naiveWaiter) bool { return w.ticket == ticket }) }
	leave := func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.leave(s, place(), time.Now())
	}
	quit := func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.quit(s, place())
	}
	return &semaphore.Waiting{Done: w.done, Leave: leave, Quit: quit}
}

// quit keeps the place, for a repeat, until the wait ends.
func (n *naive) quit(s *naiveSem, i int) {
	if i < 0 {
		return
	}
	w := s.line[i]
	w.done <- semaphore.Reply{Err: semaphore.ErrShutdown}
	w.ticket, w.done = semaphore.Ticket{}, make(chan semaphore.Reply, 1)
	if n.flaw == "who quits is in nobody's way and in nobody's line" {
		s.line[i].ask.Holder = "nobody"
	}
}

func (n *naive) leave(s *naiveSem, i int, now time.Time) semaphore.Number {
	if i < 0 {
		return truth(n.flaw == "cancel says yes to who does not wait")
	}
	w := s.line[i]
	s.line = slices.Delete(s.line, i, i+1)
	s.counters.WaitTotal += now.Sub(w.since)
	w.done <- semaphore.Reply{}
	n.serve(s, now)
	return 1
}

func (n *naive) release(s *naiveSem, r semaphore.Release, now time.Time) semaphore.Number {
	i := s.holding(r.Holder, r.Token)
	if i < 0 {
		return 0
	}
	s.counters.Releases++
	s.counters.HeldTotal += now.Sub(s.grants[i].at)
	s.used = now
	s.grants = slices.Delete(s.grants, i, i+1)
	n.serve(s, now)
	return 1
}

func (n *naive) renew(s *naiveSem, r semaphore.Renew, now time.Time) (any, error) {
	i := s.holding(r.Holder, r.Token)
	if i < 0 {
		return semaphore.Number(0), nil
	}
	if err := s.admits(r.Lease); err != nil {
		return nil, err
	}
	g := s.grants[i]
	if r.Lease == 0 {
		r.Lease = g.lastSpan
	}
	g.Ticket = semaphore.Ticket{}
	g.lease(s, r.Lease, now)
	s.counters.Renewals++
	if r.Lease == semaphore.Persist {
		return semaphore.Number(-1), nil
	}
	return semaphore.Number(g.left(now).Milliseconds()), nil
}

func (n *naive) resize(s *naiveSem, r semaphore.Resize, now time.Time) (any, error) {
	settings := given(s.settings, r.Settings)
	if contradictory(settings) {
		return nil, semaphore.Errorf(semaphore.CodeInvalid, "LEASE is above MAXLEASE")
	}
	s.capacity, s.settings = r.Capacity, settings
	if n.flaw != "resize wakes nobody" {
		n.serve(s, now)
	}
	return s.usage(), nil
}

func (n *naive) remove(s *naiveSem, r semaphore.Delete) (any, error) {
	if len(s.grants) > 0 && !r.Force {
		return nil, semaphore.ErrInUse
	}
	for _, w := range s.line {
		w.done <- semaphore.Reply{Err: semaphore.ErrNoSemaphore}
	}
	s.line = nil
	n.sems = slices.DeleteFunc(n.sems, func(o *naiveSem) bool { return o == s })
	return semaphore.Number(1), nil
}
