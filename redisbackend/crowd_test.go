package redisbackend

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// cpu is how much of a processor a Redis has used so far.
func cpu(t *testing.T, r *redisd.Server) time.Duration {
	t.Helper()
	var sum float64
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(r.Field(name), 64)
		if err != nil {
			t.Fatalf("%s: got %v, want a number", name, err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// connections is how many clients a Redis has, beside the one that asks.
func connections(t *testing.T, r *redisd.Server) int {
	t.Helper()
	list, err := r.Do("CLIENT", "LIST")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(fmt.Sprint(list), "\n") - 1
}

func TestTenThousandWaitersCostRedisNextToNothing(t *testing.T) {
	const semaphores, waiters = 100, 10_000
	r := redisd.Run(t)
	e := openEngine(t, r)
	for n := range semaphores {
		if got := acquire(e, gate(fmt.Sprint(n), "holder", 1, 0)); got.Value == nil {
			t.Fatalf("got %v, want a grant", got.Err)
		}
	}
	before := runtime.NumGoroutine()
	line := make([]*semaphore.Waiting, waiters)
	var clients sync.WaitGroup
	for part := range 50 {
		clients.Go(func() {
			for n := part; n < waiters; n += 50 {
				got := one(e, gate(fmt.Sprint(n%semaphores), fmt.Sprint("w", n), 1, time.Hour))
				w, ok := got.Value.(*semaphore.Waiting)
				if !ok {
					t.Errorf("got %v, %v, want to wait", got.Value, got.Err)
					return
				}
				line[n] = w
			}
		})
	}
	clients.Wait()
	if t.Failed() {
		return
	}
	if got := runtime.NumGoroutine() - before; got > 20 {
		t.Errorf("goroutines for %d waiters: got %d more, want next to none", waiters, got)
	}
	if got := connections(t, r); got > 16 {
		t.Errorf("connections to Redis: got %d, want at most 16", got)
	}
	const while = 3 * time.Second
	used := cpu(t, r)
	<-time.After(while) // nothing is to happen meanwhile
	used = cpu(t, r) - used
	t.Logf("%d waiters on %d semaphores: %d connections, Redis used %.2f %% of a processor", waiters, semaphores, connections(t, r), 100*float64(used)/float64(while))
	if used > while/10 {
		t.Errorf("Redis used %v in %v in which everybody waited, want next to nothing", used, while)
	}
	for _, w := range line {
		w.Leave()
	}
	for n, w := range line {
		if got := <-w.Done; got.Value != nil || got.Err != nil {
			t.Fatalf("waiter %d: got %v, %v, want no permit", n, got.Value, got.Err)
		}
	}
}
