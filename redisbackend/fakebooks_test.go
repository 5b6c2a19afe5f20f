package redisbackend

import (
	"sync"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// fakeBooks are books in memory, on the clock of a bubble: what a step means, without Redis. fault says
// what happens to each call.
type fakeBooks struct {
	mu      sync.Mutex
	sems    map[string]*fakeSem
	heard   map[string]bool // semaphores whose messages are listened to
	latency time.Duration
	fault   func(calls int) fault
	calls   int
	flying  sync.WaitGroup // calls that are under way
	seen    []*script.Step
}

// fault is what happens to a call.
type fault int

const (
	none      fault = iota
	refused         // it is certain that it did nothing
	lostReply       // it takes effect, and its reply is lost
	lostCall        // it never takes effect, and nobody knows
	lateCall        // its reply is lost, and it arrives just before it would be too late
	forbidden       // Redis refuses it
	tooLate         // it arrives when it is too late
)

type fakeSem struct {
	capacity int64
	last     int64
	grants   map[string]*fakeGrant
	released map[semaphore.Ticket]bool
	serial   uint64
	timeouts int64
}

type fakeGrant struct {
	semaphore.Grant
	permits int64
	ends    time.Time
}

func newFakeBooks() *fakeBooks {
	return &fakeBooks{sems: map[string]*fakeSem{}, heard: map[string]bool{}, latency: time.Millisecond}
}

func (b *fakeBooks) now(string) int64 { return time.Now().UnixMilli() }

func (b *fakeBooks) listen(key string) { b.hear(key, true) }
func (b *fakeBooks) ignore(key string) { b.hear(key, false) }

func (b *fakeBooks) hear(key string, hears bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard[key] = hears
}

func (b *fakeBooks) serve(key string, stamp script.Stamp, s *script.Step, done func(*script.Outcome, error)) {
	b.mu.Lock()
	b.seen = append(b.seen, s)
	b.mu.Unlock()
	deliver(b, stamp, func() (*script.Outcome, error) { return b.step(key, stamp, s) }, done)
}

func (b *fakeBooks) ask(r semaphore.Request, stamp script.Stamp, _ semaphore.Ticket, done func(*script.Answer, error)) {
	deliver(b, stamp, func() (*script.Answer, error) { return b.answer(r, stamp) }, done)
}

// deliver carries out a call as the next fault says.
func deliver[R any](b *fakeBooks, stamp script.Stamp, carryOut func() (*R, error), done func(*R, error)) {
	b.mu.Lock()
	b.calls++
	f := none
	if b.fault != nil {
		f = b.fault(b.calls)
	}
	latency := b.latency
	b.mu.Unlock()
	locked := func() (*R, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return carryOut()
	}
	b.flying.Go(func() {
		time.Sleep(latency)
		switch f {
		case none:
			done(locked())
		case refused:
			done(nil, semaphore.ErrDown)
		case forbidden:
			done(nil, semaphore.Errorf(semaphore.CodeBackend, "NOPERM"))
		case tooLate:
			done(nil, script.ErrVoid)
		case lostReply:
			_, _ = locked()
			done(nil, link.ErrUnknown)
		case lostCall:
			done(nil, link.ErrUnknown)
		case lateCall:
			done(nil, link.ErrUnknown)
			time.Sleep(time.Until(time.UnixMilli(stamp.NotAfter)))
			_, _ = locked()
		}
	})
}

// late says that a call does nothing.
func (b *fakeBooks) late(key string, stamp script.Stamp) bool {
	if m := b.sems[key]; m != nil {
		if stamp.Serial < m.serial {
			return true
		}
		m.serial = stamp.Serial
	}
	return b.now(key) > stamp.NotAfter
}

func (b *fakeBooks) step(key string, stamp script.Stamp, s *script.Step) (*script.Outcome, error) {
	if b.late(key, stamp) {
		return nil, script.ErrVoid
	}
	o := &script.Outcome{Now: b.now(key), NextEnd: -1}
	m := b.sems[key]
	if m == nil {
		o.Gone = true
		for range s.Ops {
			o.Ops = append(o.Ops, script.Result{Reply: semaphore.Reply{Err: semaphore.ErrNoSemaphore}})
		}
		return o, nil
	}
	m.expire()
	m.timeouts += s.Timeouts
	line := s.Candidates
	handOver := func() {
		for len(line) > 0 {
			c := line[0]
			g := m.grants[c.Acquire.Holder]
			if g == nil && !m.fits(c.Acquire.Permits) {
				return
			}
			o.Served = append(o.Served, m.give(c.Acquire, c.Ticket))
			line = line[1:]
		}
	}
	handOver()
	for _, op := range s.Ops {
		o.Ops = append(o.Ops, m.do(op, len(line) > 0 || s.Behind))
		handOver()
	}
	o.Free, o.Capacity = m.capacity-m.used(), m.capacity
	for _, g := range m.grants {
		if left := time.Until(g.ends); o.NextEnd < 0 || left < o.NextEnd {
			o.NextEnd = left
		}
	}
	return o, nil
}

func (m *fakeSem) do(op script.Op, behind bool) script.Result {
	number := func(ok bool) script.Result {
		n := semaphore.Number(0)
		if ok {
			n = 1
		}
		return script.Result{Reply: semaphore.Reply{Value: n}}
	}
	switch r := op.Request.(type) {
	case semaphore.Acquire:
		if m.grants[r.Holder] == nil && (behind || !m.fits(r.Permits)) {
			return script.Result{Joins: r.Wait > 0}
		}
		return script.Result{Reply: m.give(&r, op.Ticket)}
	case semaphore.Release:
		if m.released[op.Ticket] {
			return number(true)
		}
		if m.grants[r.Holder] == nil {
			return number(false)
		}
		delete(m.grants, r.Holder)
		m.released[op.Ticket] = true
		return number(true)
	case script.GiveBack:
		g := m.grants[r.Holder]
		if g == nil || g.Ticket != r.Ticket || r.Token != 0 && r.Token != g.Token {
			return number(false)
		}
		delete(m.grants, r.Holder)
		return number(true)
	case semaphore.Check:
		g := m.grants[r.Holder]
		return number(g != nil && g.Token == r.Token)
	}
	panic("no such op")
}

// give grants, or tells again what was granted.
func (m *fakeSem) give(a *semaphore.Acquire, t semaphore.Ticket) semaphore.Reply {
	if g := m.grants[a.Holder]; g != nil {
		told := g.Grant
		told.Replayed = g.Ticket != t
		if told.Replayed {
			g.Ticket = semaphore.Ticket{}
		}
		return semaphore.Reply{Value: &told}
	}
	m.last++
	g := &fakeGrant{permits: a.Permits, ends: time.Now().Add(a.Lease)}
	g.Grant = semaphore.Grant{Holder: a.Holder, Token: m.last, Lease: a.Lease, Ticket: t}
	m.grants[a.Holder] = g
	told := g.Grant
	return semaphore.Reply{Value: &told}
}

func (m *fakeSem) expire() {
	for holder, g := range m.grants {
		if !g.ends.After(time.Now()) {
			delete(m.grants, holder)
		}
	}
}

func (m *fakeSem) used() int64 {
	n := int64(0)
	for _, g := range m.grants {
		n += g.permits
	}
	return n
}

func (m *fakeSem) fits(n int64) bool { return m.used()+n <= m.capacity }

func (b *fakeBooks) answer(request semaphore.Request, stamp script.Stamp) (*script.Answer, error) {
	key := request.Semaphore()
	if b.late(key, stamp) {
		return nil, script.ErrVoid
	}
	m := b.sems[key]
	if r, ok := request.(semaphore.Create); ok {
		if m == nil {
			b.sems[key] = &fakeSem{capacity: r.Capacity, grants: map[string]*fakeGrant{}, released: map[semaphore.Ticket]bool{}}
		}
		return &script.Answer{}, nil
	}
	if m == nil {
		return &script.Answer{Reply: semaphore.Reply{Err: semaphore.ErrNoSemaphore}}, nil
	}
	m.expire()
	usage := semaphore.Usage{Capacity: m.capacity, InUse: m.used(), Available: max(0, m.capacity-m.used())}
	switch r := request.(type) {
	case semaphore.Resize:
		m.capacity = r.Capacity
		return &script.Answer{Reply: semaphore.Reply{Value: usage}}, nil
	case semaphore.Delete:
		delete(b.sems, key)
		return &script.Answer{Reply: semaphore.Reply{Value: semaphore.Number(1)}}, nil
	case semaphore.Inspect:
		return &script.Answer{Reply: semaphore.Reply{Value: &semaphore.Info{
			Name: key, Usage: usage, Counters: semaphore.Counters{WaitTimeouts: m.timeouts},
		}}}, nil
	}
	panic("no such question")
}
