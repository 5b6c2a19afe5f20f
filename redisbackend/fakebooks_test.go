package redisbackend

import (
	"sync"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// fakeBooks are books in memory, on the clock of a bubble: what a step means, without Redis. fault says
// what happens to each call.
type fakeBooks struct {
	mu      sync.Mutex
	sems    map[string]*fakeSem
	latency time.Duration
	fault   func(calls int) fault
	calls   int
	late    sync.WaitGroup // calls that are under way
	seen    []*step
}

// fault is what happens to a call.
type fault int

const (
	none      fault = iota
	refused         // it is certain that it did nothing
	lostReply       // it takes effect, and its reply is lost
	lostCall        // it never takes effect, and nobody knows
	lateCall        // its reply is lost, and it arrives just before it would be too late
)

type fakeSem struct {
	capacity int64
	last     int64
	grants   map[string]*fakeGrant
	released map[semaphore.Ticket]bool
	head     int64
	serial   uint64
	timeouts int64
}

type fakeGrant struct {
	semaphore.Grant
	permits int64
	ends    time.Time
}

func newFakeBooks() *fakeBooks {
	return &fakeBooks{sems: map[string]*fakeSem{}, latency: time.Millisecond}
}

func (b *fakeBooks) now(string) int64 { return time.Now().UnixMilli() }

func (b *fakeBooks) serve(key string, s *step, done func(outcome, error)) {
	b.mu.Lock()
	b.seen = append(b.seen, s)
	b.mu.Unlock()
	deliver(b, s.stamp.NotAfter, func() outcome { return b.step(key, s) }, done)
}

func (b *fakeBooks) ask(key string, q *question, done func(answer, error)) {
	deliver(b, q.stamp.NotAfter, func() answer { return b.answer(key, q) }, done)
}

// deliver carries out a call as the next fault says.
func deliver[R any](b *fakeBooks, notAfter int64, carryOut func() R, done func(R, error)) {
	b.mu.Lock()
	b.calls++
	f := none
	if b.fault != nil {
		f = b.fault(b.calls)
	}
	latency := b.latency
	b.mu.Unlock()
	locked := func() R {
		b.mu.Lock()
		defer b.mu.Unlock()
		return carryOut()
	}
	b.late.Go(func() {
		time.Sleep(latency)
		var zero R
		switch f {
		case none:
			done(locked(), nil)
		case refused:
			done(zero, semaphore.ErrDown)
		case lostReply:
			locked()
			done(zero, errUnknown)
		case lostCall:
			done(zero, errUnknown)
		case lateCall:
			done(zero, errUnknown)
			time.Sleep(time.Until(time.UnixMilli(notAfter)))
			locked()
		}
	})
}

func (b *fakeBooks) step(key string, s *step) outcome {
	o := outcome{now: b.now(key), nextEnd: -1}
	if o.now > s.stamp.NotAfter {
		return outcome{void: true}
	}
	m := b.sems[key]
	if m == nil {
		o.gone = true
		for range s.ops {
			o.ops = append(o.ops, opResult{Reply: semaphore.Reply{Err: semaphore.ErrNoSemaphore}})
		}
		return o
	}
	if s.stamp.Serial < m.serial {
		return outcome{void: true}
	}
	m.serial = s.stamp.Serial
	m.expire()
	m.head = s.head
	m.timeouts += s.missed.timeouts
	line := s.candidates
	handOver := func() {
		for len(line) > 0 {
			c := line[0]
			g := m.grants[c.acquire.Holder]
			if g == nil && !m.fits(c.acquire.Permits) {
				return
			}
			o.served = append(o.served, m.give(c.acquire, c.ticket))
			line = line[1:]
		}
	}
	handOver()
	for _, op := range s.ops {
		o.ops = append(o.ops, m.do(op, len(line) > 0 || s.behind))
		handOver()
	}
	o.free = m.capacity - m.used()
	for _, g := range m.grants {
		if left := time.Until(g.ends); o.nextEnd < 0 || left < o.nextEnd {
			o.nextEnd = left
		}
	}
	return o
}

func (m *fakeSem) do(op op, behind bool) opResult {
	number := func(ok bool) opResult {
		n := semaphore.Number(0)
		if ok {
			n = 1
		}
		return opResult{Reply: semaphore.Reply{Value: n}}
	}
	switch r := op.request.(type) {
	case semaphore.Acquire:
		if m.grants[r.Holder] == nil && (behind || !m.fits(r.Permits)) {
			return opResult{joins: r.Wait > 0}
		}
		return opResult{Reply: m.give(&r, op.ticket)}
	case semaphore.Release:
		if m.released[op.ticket] {
			return number(true)
		}
		if m.grants[r.Holder] == nil {
			return number(false)
		}
		delete(m.grants, r.Holder)
		m.released[op.ticket] = true
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

func (b *fakeBooks) answer(key string, q *question) answer {
	if b.now(key) > q.stamp.NotAfter {
		return answer{void: true}
	}
	m := b.sems[key]
	if r, ok := q.request.(semaphore.Create); ok {
		if m == nil {
			b.sems[key] = &fakeSem{capacity: r.Capacity, grants: map[string]*fakeGrant{}, released: map[semaphore.Ticket]bool{}}
		}
		return answer{}
	}
	if m == nil {
		return answer{Reply: semaphore.Reply{Err: semaphore.ErrNoSemaphore}}
	}
	if q.stamp.Serial < m.serial {
		return answer{void: true}
	}
	m.serial = q.stamp.Serial
	m.expire()
	usage := semaphore.Usage{Capacity: m.capacity, InUse: m.used(), Available: max(0, m.capacity-m.used())}
	switch r := q.request.(type) {
	case semaphore.Resize:
		m.capacity = r.Capacity
		return answer{Reply: semaphore.Reply{Value: usage}}
	case semaphore.Delete:
		delete(b.sems, key)
		return answer{Reply: semaphore.Reply{Value: semaphore.Number(1)}}
	case semaphore.Inspect:
		return answer{Reply: semaphore.Reply{Value: &semaphore.Info{
			Name: key, Usage: usage, Counters: semaphore.Counters{WaitTimeouts: m.timeouts},
		}}}
	}
	panic("no such question")
}
