package server

import (
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// fake is a naive backend: permits of 1, leases that never end, tokens 1, 2, 3, …
type fake struct {
	mu        sync.Mutex
	sems      map[string]*fakeSem
	token     int64
	calls     [][]semaphore.Request
	givenBack []string
	keeps     bool   // the place of a waiter whose server stops
	before    func() // called before each Do, without the lock
}

type fakeSem struct {
	capacity int64
	settings semaphore.Settings
	holders  map[string]*semaphore.Grant
	line     []*fakeWaiter
}

type fakeWaiter struct {
	request semaphore.Acquire
	done    chan semaphore.Reply
	timer   *time.Timer
}

func newFake() *fake { return &fake{sems: map[string]*fakeSem{}} }

func (f *fake) Do(requests []semaphore.Request) []semaphore.Reply {
	if f.before != nil {
		f.before()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, slices.Clone(requests))
	replies := make([]semaphore.Reply, len(requests))
	for i, q := range requests {
		replies[i].Value, replies[i].Err = f.one(q)
	}
	return replies
}

func (f *fake) one(q semaphore.Request) (any, error) {
	s := f.sems[q.Semaphore()]
	switch q := q.(type) {
	case semaphore.Create:
		if s != nil && s.capacity != q.Capacity {
			return nil, semaphore.Errorf(semaphore.CodeConflict, "capacity is %d", s.capacity)
		}
		if s == nil {
			f.sems[q.Key] = &fakeSem{capacity: q.Capacity, settings: q.Settings, holders: map[string]*semaphore.Grant{}}
		}
		return nil, nil
	case semaphore.Scan:
		page := &semaphore.KeyPage{}
		for k := range f.sems {
			page.Keys = append(page.Keys, k)
		}
		slices.Sort(page.Keys)
		return page, nil
	case semaphore.Acquire:
		if s == nil && !q.Create {
			return nil, semaphore.ErrNoSemaphore
		}
		if s == nil {
			s = &fakeSem{capacity: q.Capacity, holders: map[string]*semaphore.Grant{}}
			f.sems[q.Key] = s
		}
		return f.acquire(s, q)
	}
	if s == nil {
		return nil, semaphore.ErrNoSemaphore
	}
	return f.existing(s, q)
}

func (f *fake) existing(s *fakeSem, q semaphore.Request) (any, error) {
	switch q := q.(type) {
	case semaphore.Release:
		if s.holders[q.Holder] == nil {
			return semaphore.Number(0), nil
		}
		f.free(s, q.Holder)
		return semaphore.Number(1), nil
	case semaphore.Renew:
		return semaphore.Number(q.Lease.Milliseconds()), nil
	case semaphore.Check:
		g := s.holders[q.Holder]
		return semaphore.Number(truth(g != nil && g.Token == q.Token)), nil
	case semaphore.Resize:
		s.capacity = q.Capacity
		return f.usage(s), nil
	case semaphore.Inspect:
		return &semaphore.Info{Name: q.Key, Usage: f.usage(s), Waiters: int64(len(s.line)), Settings: s.settings, LastToken: f.token}, nil
	case semaphore.Holders:
		page := &semaphore.HolderPage{}
		for h, g := range s.holders {
			page.Rows = append(page.Rows, semaphore.HolderRow{Holder: h, Token: g.Token, Permits: 1, Remaining: g.Lease})
		}
		return page, nil
	case semaphore.Waiters:
		page := &semaphore.WaiterPage{}
		for _, w := range s.line {
			page.Rows = append(page.Rows, semaphore.WaiterRow{Holder: w.request.Holder, Permits: 1, Client: w.request.Label})
		}
		return page, nil
	case semaphore.Delete:
		delete(f.sems, q.Key)
		return semaphore.Number(1), nil
	}
	return semaphore.Number(0), nil
}

func (f *fake) usage(s *fakeSem) semaphore.Usage {
	held := int64(len(s.holders))
	return semaphore.Usage{Capacity: s.capacity, InUse: held, Available: max(0, s.capacity-held)}
}

func (f *fake) acquire(s *fakeSem, q semaphore.Acquire) (any, error) {
	if g := s.holders[q.Holder]; g != nil {
		again := *g
		again.Replayed = true
		return &again, nil
	}
	if int64(len(s.holders)) < s.capacity {
		return f.grant(s, q), nil
	}
	if q.Wait == 0 {
		return nil, nil
	}
	w := &fakeWaiter{request: q, done: make(chan semaphore.Reply, 1)}
	leave := func() { f.leave(s, w) }
	w.timer = time.AfterFunc(q.Wait, leave)
	s.line = append(s.line, w)
	line := &semaphore.Waiting{Done: w.done, Leave: leave}
	if f.keeps {
		line.Quit = func() { f.quit(w) }
	}
	return line, nil
}

// keepPlaces makes those who join a line from now on keep their place when the server stops.
func (f *fake) keepPlaces() {
	f.mu.Lock()
	f.keeps = true
	f.mu.Unlock()
}

// quit answers a waiter and leaves its place as it is.
func (f *fake) quit(w *fakeWaiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.timer.Stop()
	w.done <- semaphore.Reply{Err: semaphore.ErrShutdown}
}

func (f *fake) grant(s *fakeSem, q semaphore.Acquire) *semaphore.Grant {
	f.token++
	slot := int64(len(s.holders))
	lease := q.Lease
	if lease == 0 {
		lease = 30 * time.Second
	}
	g := &semaphore.Grant{Holder: q.Holder, Token: f.token, Slots: []semaphore.Range{{First: slot, Last: slot}}, Lease: lease}
	s.holders[q.Holder] = g
	return g
}

func (f *fake) free(s *fakeSem, holder string) {
	delete(s.holders, holder)
	for len(s.line) > 0 && int64(len(s.holders)) < s.capacity {
		w := s.line[0]
		s.line = s.line[1:]
		w.timer.Stop()
		w.done <- semaphore.Reply{Value: f.grant(s, w.request)}
	}
}

func (f *fake) leave(s *fakeSem, w *fakeWaiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(s.line, w); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		w.timer.Stop()
		w.done <- semaphore.Reply{}
	}
}

func (f *fake) GiveBack(key string, g *semaphore.Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.givenBack = append(f.givenBack, g.Holder)
	if s := f.sems[key]; s != nil && s.holders[g.Holder] == g {
		f.free(s, g.Holder)
	}
}

// held returns how many hold and how many wait.
func (f *fake) held(key string) (holders, waiters int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sems[key]
	if s == nil {
		return 0, 0
	}
	return len(s.holders), len(s.line)
}

// runs returns how many requests came in each call.
func (f *fake) runs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lengths []int
	for _, c := range f.calls {
		lengths = append(lengths, len(c))
	}
	return lengths
}
