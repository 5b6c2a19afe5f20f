package redisbackend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// mangled are the books in a Redis behind a network that loses, delays, repeats and so reorders calls.
type mangled struct {
	*remote
	work sync.WaitGroup

	mu   sync.Mutex
	dice *rand.Rand // nil: nothing happens to calls any more
	seen [5]int
}

// fate decides what happens to a call: whether its reply is lost, and after how long it is carried out,
// once or more often.
func (m *mangled) fate() (lost bool, after []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dice == nil {
		return false, []time.Duration{0}
	}
	later := func() time.Duration { return time.Duration(m.dice.IntN(300)) * time.Millisecond }
	kind := max(0, m.dice.IntN(12)-7)
	m.seen[kind]++
	switch kind {
	case 1: // it never arrives
		return true, nil
	case 2: // its reply is lost
		return true, []time.Duration{0}
	case 3: // it arrives late, when nobody waits for its reply
		return true, []time.Duration{later()}
	case 4: // it arrives, and again later
		return false, []time.Duration{0, later(), later()}
	}
	return false, []time.Duration{0}
}

// mangle sends a call as its fate is.
func mangle[R any](m *mangled, send func(done func(R, error)), done func(R, error)) {
	lost, after := m.fate()
	for n, d := range after {
		answers := n == 0 && !lost
		m.work.Go(func() {
			<-time.After(d)
			arrived := make(chan struct{})
			send(func(r R, err error) {
				if answers {
					done(r, err)
				}
				close(arrived)
			})
			<-arrived
		})
	}
	if lost {
		m.work.Go(func() {
			var none R
			done(none, link.ErrUnknown)
		})
	}
}

func (m *mangled) serve(key string, stamp script.Stamp, s *script.Step, done func(*script.Outcome, error)) {
	mangle(m, func(done func(*script.Outcome, error)) { m.remote.serve(key, stamp, s, done) }, done)
}

func (m *mangled) ask(r semaphore.Request, stamp script.Stamp, t semaphore.Ticket, done func(*script.Answer, error)) {
	mangle(m, func(done func(*script.Answer, error)) { m.remote.ask(r, stamp, t, done) }, done)
}

// mangledCore is an engine on a Redis behind such a network.
func mangledCore(t *testing.T, r *redisd.Server, seed uint64) (*core, *mangled) {
	e := openEngine(t, r, idle)
	m := &mangled{remote: e.remote, dice: rand.New(rand.NewPCG(seed, 0))}
	c := newCore(m, semaphore.DefaultLimits(), 5*time.Second, NewMetrics(prometheus.NewRegistry()))
	c.start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c.close(ctx)
		m.work.Wait()
	})
	return c, m
}

func TestCallsThatAreLostLateRepeatedAndReorderedLeakNothing(t *testing.T) {
	const semaphores, capacity = 3, 2
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := redisd.Run(t)
	plain := openEngine(t, r, idle)
	first, one1 := mangledCore(t, r, seed)
	second, two := mangledCore(t, r, seed+1)
	for n := range semaphores {
		create(t, plain, fmt.Sprint("k", n), capacity)
	}
	var clients sync.WaitGroup
	for n := range 24 {
		key := fmt.Sprint("k", n%semaphores)
		through := []*core{first, second}[n%2]
		do := func(r semaphore.Request) semaphore.Reply {
			replies := make([]semaphore.Reply, 1)
			through.do(key, []semaphore.Request{r}, replies)
			return replies[0]
		}
		c := newRandomClient(t, do, key, name(n), seed, 100*time.Millisecond)
		c.late = patience
		clients.Go(func() { c.rounds(40) })
	}
	clients.Wait()
	for _, m := range []*mangled{one1, two} {
		m.mu.Lock()
		m.dice = nil
		t.Logf("calls: plain, lost, replies lost, late, repeated: %v", m.seen)
		m.mu.Unlock()
	}
	for n := range semaphores {
		key := fmt.Sprint("k", n)
		var got *semaphore.Info
		trial.Until(t, "all free", func() bool {
			got = one(plain, semaphore.Inspect{Key: key}).Value.(*semaphore.Info)
			return got.InUse == 0 && got.Available == capacity
		})
		if got.Missing != 0 || got.Surplus != 0 || got.Counters.Reconciled != 0 {
			t.Errorf("%s: got %+v, want the books to balance by themselves", key, got)
		}
	}
}
