package redisbackend

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// patience is how long a test waits for what must happen, however slow the machine.
const patience = 20 * time.Second

// gate is a request for one permit of a semaphore that is made if there is none.
func gate(key, holder string, capacity int64, wait time.Duration) semaphore.Acquire {
	return semaphore.Acquire{Key: key, Holder: holder, Permits: 1, Wait: wait, Create: true, Capacity: capacity}
}

// acquire carries out an Acquire to its end.
func acquire(e *Engine, a semaphore.Acquire) semaphore.Reply {
	r := one(e, a)
	if w, ok := r.Value.(*semaphore.Waiting); ok {
		return <-w.Done
	}
	return r
}

// room is what holders share: it may never be fuller than the capacity.
type room struct {
	testing.TB
	capacity  int64
	now, most atomic.Int64
}

func (r *room) enter(permits int64) {
	n := r.now.Add(permits)
	if n > r.capacity {
		r.Errorf("held at once: got %d, want at most %d", n, r.capacity)
	}
	for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); {
		most = r.most.Load()
	}
}

func (r *room) leave(permits int64) { r.now.Add(-permits) }

// engines opens several on one Redis.
func engines(t testing.TB, n int) []*Engine {
	r := redisd.Run(t)
	all := make([]*Engine, n)
	for i := range all {
		all[i] = openEngine(t, r)
	}
	return all
}

func TestSeveralServersIssueNoMoreThanTheCapacity(t *testing.T) {
	const capacity, rounds = 3, 40
	all := engines(t, 3)
	var grants atomic.Int64
	held := &room{TB: t, capacity: capacity}
	var clients sync.WaitGroup
	began := time.Now()
	for n := range 30 {
		clients.Go(func() {
			for round := range rounds {
				holder := fmt.Sprintf("%d.%d", n, round)
				r := acquire(all[n%3], gate("k", holder, capacity, time.Minute))
				if _, ok := r.Value.(*semaphore.Grant); !ok {
					t.Errorf("%s: got %v, %v, want a grant", holder, r.Value, r.Err)
					return
				}
				grants.Add(1)
				held.enter(1)
				held.leave(1)
				// Any server takes a release.
				if r := one(all[(n+round)%3], semaphore.Release{Key: "k", Holder: holder}); r.Value != semaphore.Number(1) {
					t.Errorf("release of %s: got %v, %v, want 1", holder, r.Value, r.Err)
				}
			}
		})
	}
	clients.Wait()
	t.Logf("%d grants through 3 servers in %v, at most %d at once", grants.Load(), time.Since(began), held.most.Load())
}

func TestArrivalCountsAcrossServers(t *testing.T) {
	all := engines(t, 3)
	if r := acquire(all[0], gate("k", "first", 1, 0)); r.Value == nil {
		t.Fatalf("got %v, want a grant", r.Err)
	}
	const waiters = 60
	order := make(chan int, waiters)
	var clients sync.WaitGroup
	for n := range waiters {
		r := one(all[n%3], gate("k", fmt.Sprint(n), 1, time.Minute))
		w, ok := r.Value.(*semaphore.Waiting)
		if !ok {
			t.Fatalf("got %v, %v, want to wait", r.Value, r.Err)
		}
		<-time.After(2 * time.Millisecond) // the next one arrives in another millisecond
		clients.Go(func() {
			if r := <-w.Done; r.Err != nil || r.Value == nil {
				t.Errorf("waiter %d: got %v, %v, want a grant", n, r.Value, r.Err)
			}
			order <- n
			if r := one(all[n%2], semaphore.Release{Key: "k", Holder: fmt.Sprint(n)}); r.Value != semaphore.Number(1) {
				t.Errorf("release by %d: got %v, %v", n, r.Value, r.Err)
			}
		})
	}
	began := time.Now()
	one(all[1], semaphore.Release{Key: "k", Holder: "first"})
	clients.Wait()
	close(order)
	want := 0
	for n := range order {
		if n != want {
			t.Errorf("got waiter %d, want %d", n, want)
		}
		want++
	}
	t.Logf("%d hand-overs between 3 servers in %v", waiters, time.Since(began))
}

func TestAServerThatDiesHoldsUpTheLineForAMoment(t *testing.T) {
	all := engines(t, 2)
	dying, other := all[0], all[1]
	older := holdAndWait(t, dying)
	<-time.After(5 * time.Millisecond) // the other one arrives in another millisecond
	younger := wait(t, other, "c", time.Minute)
	dying.remote.link.Close() // it cannot tell Redis that nobody waits there any more
	dying.Halt()
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	<-older.Done
	release(t, other, "a")
	began := time.Now()
	granted(t, younger)
	t.Logf("served %v after the release, behind the place of a dead server", time.Since(began))
	release(t, other, "c")
}
