package semtest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
)

// loadCases are about many clients at once.
func loadCases() []testCase {
	return []testCase{
		{"ManyClientsNeverExceedCapacity", manyClientsNeverExceedCapacity},
		{"NoPermitIsLostWhateverClientsDo", noPermitIsLostWhateverClientsDo},
		{"LongLineIsServedInOrder", longLineIsServedInOrder},
	}
}

// observer knows who holds which slot from what the clients were told, not from the engine's books.
type observer struct {
	mu     sync.Mutex
	slots  map[int64]string
	tokens map[int64]string
	faults []string
}

func newObserver() *observer {
	return &observer{slots: map[int64]string{}, tokens: map[int64]string{}}
}

// enter notes a grant; call it once the grant is known.
func (o *observer) enter(g *semaphore.Grant, capacity int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other, used := o.tokens[g.Token]; used {
		o.fault("token %d was given to %s and %s", g.Token, other, g.Holder)
	}
	o.tokens[g.Token] = g.Holder
	for _, run := range g.Slots {
		for slot := run.First; slot <= run.Last; slot++ {
			if other, taken := o.slots[slot]; taken || slot >= capacity {
				o.fault("slot %d of %d went to %s beside %q", slot, capacity, g.Holder, other)
			}
			o.slots[slot] = g.Holder
		}
	}
}

// exit notes that a grant is about to be released.
func (o *observer) exit(g *semaphore.Grant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, run := range g.Slots {
		for slot := run.First; slot <= run.Last; slot++ {
			delete(o.slots, slot)
		}
	}
}

func (o *observer) fault(format string, args ...any) {
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

func manyClientsNeverExceedCapacity(s *sem) {
	const capacity, clients, rounds = 5, 20, 40
	s.create(capacity)
	watch := newObserver()
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for round := range rounds {
				r := s.ask(semaphore.Acquire{Holder: fmt.Sprint(c, "-", round), Permits: 1 + int64(c%3), Lease: long, Wait: long})
				reply := s.do(r)
				if w, waits := reply.Value.(*semaphore.Waiting); waits {
					reply = (&waiter{s: s, request: r, Waiting: w}).outcome()
				}
				g, ok := reply.Value.(*semaphore.Grant)
				if !ok {
					s.Errorf("%s got %v, %v, want a grant", r.Holder, reply.Value, reply.Err)
					return
				}
				watch.enter(g, capacity)
				runtime.Gosched()
				watch.exit(g)
				s.release(r.Holder)
			}
		})
	}
	all.Wait()
	for _, fault := range watch.faults {
		s.Error(fault)
	}
	equal(s, "grants", len(watch.tokens), clients*rounds)
	s.books(0, capacity, 0)
	i := s.info()
	equal(s, "grants counted", i.Counters.GrantsImmediate+i.Counters.GrantsWaited, clients*rounds)
	equal(s, "releases counted", i.Counters.Releases, clients*rounds)
}

// noPermitIsLostWhateverClientsDo lets clients do anything in any order; when all leases have ended,
// every permit must be there again and nobody may wait.
func noPermitIsLostWhateverClientsDo(s *sem) {
	const capacity, clients, steps = 4, 12, 120
	s.create(capacity)
	seed := rand.Uint64()
	s.Logf("seed %d", seed)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for range steps {
				s.anything(random)
			}
		})
	}
	all.Wait()
	s.booksSoon(0, capacity, 0)
	equal(s, "holders", s.info().Holders, 0)
}

// anything does one step of a client that may behave in any way.
func (s *sem) anything(random *rand.Rand) {
	holder := fmt.Sprint("h", random.IntN(15))
	switch random.IntN(6) {
	case 0:
		s.release(holder)
	case 1:
		s.cancel(holder)
	case 2:
		s.renew(holder, time.Duration(1+random.IntN(30))*time.Millisecond)
	default:
		r := s.ask(semaphore.Acquire{
			Holder: holder, Permits: 1 + random.Int64N(3), Fresh: random.IntN(4) == 0,
			Lease: time.Duration(1+random.IntN(60)) * time.Millisecond, Wait: time.Duration(random.IntN(30)) * time.Millisecond,
		})
		s.undecided(s.do(r), random)
	}
}

// undecided follows a request to its end, leaving the line or giving the grant back now and then.
func (s *sem) undecided(reply semaphore.Reply, random *rand.Rand) {
	if w, waits := reply.Value.(*semaphore.Waiting); waits {
		if random.IntN(3) == 0 {
			w.Leave()
		}
		select {
		case reply = <-w.Done:
		case <-time.After(patience):
			s.Errorf("no reply within %v", patience)
			return
		}
	}
	if g, granted := reply.Value.(*semaphore.Grant); granted && !g.Replayed && random.IntN(4) == 0 {
		s.backend.GiveBack(s.key, g)
	}
}

// longLineIsServedInOrder gives the only permit to a whole line, each of whom returns it at once.
func longLineIsServedInOrder(s *sem) {
	s.create(1)
	last := s.grant(semaphore.Acquire{Holder: "a"})
	line := s.line(1500)
	for _, w := range line {
		equal(s, "release", s.release(last.Holder), 1)
		g := w.granted()
		s.grows(last, g)
		last = g
	}
	equal(s, "grants to waiters", s.info().Counters.GrantsWaited, int64(len(line)))
}

// tenThousandWaitsLeaveNothingBehind fills the line to its limit and empties it again.
func tenThousandWaitsLeaveNothingBehind(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a", Lease: semaphore.Persist})
	before := runtime.NumGoroutine()

	n := semaphore.DefaultLimits().MaxWaiters
	line := make([]*waiter, n)
	const clients = 100
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := c; i < n; i += clients {
				r := s.ask(semaphore.Acquire{Holder: fmt.Sprint("w", i), Wait: long})
				if w, waits := s.do(r).Value.(*semaphore.Waiting); waits {
					line[i] = &waiter{s: s, request: r, Waiting: w}
				}
			}
		})
	}
	all.Wait()
	s.books(1, 0, int64(n))
	s.refused(semaphore.CodeQueueFull, s.ask(semaphore.Acquire{Holder: "one too many", Wait: long}))
	s.none(semaphore.Acquire{Holder: "not waiting"})

	for _, w := range line {
		w.Leave()
	}
	for _, w := range line {
		w.none()
	}
	s.books(1, 0, 0)
	trial.Await(s, func() error {
		if now := runtime.NumGoroutine(); now > before+10 {
			return fmt.Errorf("goroutines: got %d, want about %d", now, before)
		}
		return nil
	})
	equal(s, "release", s.release("a"), 1)
	s.books(0, 1, 0)
}
