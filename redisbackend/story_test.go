package redisbackend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// story is what happens to a pool of three permits, told with its times.
type story struct {
	*testing.T
	redis *redisd.Server
	e     *Engine
	hand  *byHand
	began time.Time
}

// tell prints a line of the timeline, with what is free and what is held.
func (s *story) tell(format string, args ...any) {
	s.Helper()
	books := ledger(s, s.redis)
	s.Logf("%5d ms  free %v, held %v  %s", time.Since(s.began).Milliseconds(), books[0], books[1], fmt.Sprintf(format, args...))
}

// books checks what is free and what is held.
func (s *story) books(free, held int64) {
	s.Helper()
	if got := ledger(s, s.redis); got != [2]any{free, held} {
		s.Errorf("free, held: got %v, want %d, %d", got, free, held)
	}
}

func (s *story) acquire(holder string, wait, lease time.Duration) *semaphore.Grant {
	s.Helper()
	r := acquire(s.e, semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Wait: wait, Lease: lease})
	if r.Err != nil {
		s.Fatalf("%s: %v", holder, r.Err)
	}
	g, _ := r.Value.(*semaphore.Grant)
	return g
}

func (s *story) number(r semaphore.Request, want int64) {
	s.Helper()
	if got := one(s.e, r); got.Value != semaphore.Number(want) {
		s.Errorf("%T: got %v, %v, want %d", r, got.Value, got.Err, want)
	}
}

// guarded is a resource that keeps the highest token of each slot, and refuses lower ones.
type guarded struct {
	mu   sync.Mutex
	rows [3]int64
}

var errFenced = errors.New("a later holder of this slot has written")

func (g *guarded) write(by *semaphore.Grant) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if row := &g.rows[by.Slot()]; by.Token < *row {
		return errFenced
	} else {
		*row = by.Token
	}
	return nil
}

// TestTheStoryOfThreePermits is what the recipe by hand goes through in a cluster of pods, with us on
// the same keys, and the part that no recipe can do.
func TestTheStoryOfThreePermits(t *testing.T) {
	r := redisd.Run(t)
	s := &story{T: t, redis: r, e: openEngine(t, r, idle), hand: newByHand(t, r), began: time.Now()}
	create(t, s.e, "k", 3)
	s.tell("three permits")
	s.fourthWaits()
	s.doubleRelease()
	s.crashedPod()
	s.popWithoutWrite()
	s.workers()
	s.straggler()
}

func (s *story) fourthWaits() {
	for n := range 3 {
		s.acquire(fmt.Sprint("pod-", n), 0, time.Minute)
	}
	s.tell("three pods have them")
	began := time.Now()
	if g := s.acquire("pod-3", 2*time.Second, time.Minute); g != nil {
		s.Errorf("fourth pod: got %+v, want none", g)
	}
	if took := time.Since(began); took < 2*time.Second {
		s.Errorf("fourth pod: told after %v, want after 2s", took)
	}
	s.tell("a fourth has waited for 2 s and got null")
}

func (s *story) doubleRelease() {
	s.number(semaphore.Release{Key: "k", Holder: "pod-0"}, 1)
	s.number(semaphore.Release{Key: "k", Holder: "pod-0"}, 0)
	s.books(1, 2)
	s.tell("one was released twice, and counted once")
}

func (s *story) crashedPod() {
	ask(s, s.redis, "ZADD", "sem:k:holders", 1000, "pod-1") // its lease is long over
	s.number(semaphore.Reconcile{Key: "k"}, 1)
	s.number(semaphore.Release{Key: "k", Holder: "pod-1"}, 0)
	s.books(2, 1)
	s.tell("a pod that crashed was compensated, and its late release counts for nothing")
}

func (s *story) popWithoutWrite() {
	ask(s, s.redis, "RPOP", "sem:k:permits")
	s.books(1, 1)
	s.tell("a pod by hand has died between BRPOP and ZADD")
	s.number(semaphore.Reconcile{Key: "k"}, 1)
	s.number(semaphore.Release{Key: "k", Holder: "pod-2"}, 1)
	s.books(3, 0)
	s.tell("its permit is back, and everybody is gone")
}

// workers are half by hand and half ours.
func (s *story) workers() {
	held := &room{TB: s, capacity: 3}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			for round := range 50 {
				holder := fmt.Sprint("w", n, ".", round)
				if byHand := n%2 == 0; byHand {
					for !s.hand.acquire(holder) {
					}
					held.enter(1)
					<-time.After(time.Millisecond)
					held.leave(1)
					s.hand.release(holder)
					continue
				}
				if s.acquire(holder, time.Minute, time.Minute) == nil {
					s.Errorf("%s: got none in a minute", holder)
					return
				}
				held.enter(1)
				<-time.After(time.Millisecond)
				held.leave(1)
				s.number(semaphore.Release{Key: "k", Holder: holder}, 1)
			}
		})
	}
	all.Wait()
	s.books(3, 0)
	s.tell("20 workers, half of them by hand, have each worked 50 times, never more than %d at once", held.most.Load())
}

// straggler holds a lease of 500 ms for a task of 1,500 ms.
func (s *story) straggler() {
	resource := new(guarded)
	s.acquire("lasting-1", 0, time.Minute)
	s.acquire("lasting-2", 0, time.Minute)
	slow := s.acquire("slow", 0, 500*time.Millisecond)
	if err := resource.write(slow); err != nil {
		s.Errorf("write under a live lease: got %v, want none", err)
	}
	s.tell("one has a lease of 500 ms for a task of 1,500 ms: token %d, slot %d", slow.Token, slow.Slot())
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	next := s.acquire("next", 10*time.Second, time.Minute)
	if next == nil || next.Slot() != slow.Slot() || next.Token <= slow.Token {
		s.Fatalf("after the lease: got %+v, want slot %d and a token above %d", next, slow.Slot(), slow.Token)
	}
	s.tell("its lease has ended, and another has its slot: token %d", next.Token)
	if err := resource.write(next); err != nil {
		s.Errorf("write of the second holder: got %v, want none", err)
	}
	<-ctx.Done()
	if err := resource.write(slow); !errors.Is(err, errFenced) {
		s.Errorf("write of the straggler: got %v, want %v", err, errFenced)
	}
	s.tell("the straggler writes, and is refused by the resource: %v", errFenced)
}
