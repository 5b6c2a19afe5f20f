package redismode

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/redisd"
)

const (
	crowdSemaphores = 100
	crowdWaiters    = 10_000
	crowdDialers    = 50
	crowdWatched    = 2 * time.Second
	mostConnections = 16
)

// figure is a number in INFO of a Redis.
func figure(t *testing.T, r *redisd.Server, name string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(r.Field(name), 64)
	if err != nil {
		t.Fatalf("INFO %s: %v", name, err)
	}
	return n
}

// used is the processor time that a Redis has used so far.
func used(t *testing.T, r *redisd.Server) time.Duration {
	t.Helper()
	return time.Duration((figure(t, r, "used_cpu_sys") + figure(t, r, "used_cpu_user")) * float64(time.Second))
}

// line has that many connections wait, spread over the semaphores.
func line(t *testing.T, addr string) []*resp.Conn {
	t.Helper()
	conns := make([]*resp.Conn, crowdWaiters)
	t.Cleanup(func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // nobody reads from it any more
			}
		}
	})
	var dialers sync.WaitGroup
	for d := range crowdDialers {
		dialers.Go(func() {
			for n := d; n < crowdWaiters; n += crowdDialers {
				c, err := resp.Dial(addr)
				if err == nil {
					conns[n] = c
					err = c.Send("SEM.ACQUIRE", n%crowdSemaphores, "HOLDER", fmt.Sprint("w", n), "WAIT", 600_000, "LEASE", longLease)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	dialers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return conns
}

// TestTenThousandWaitersCostRedisNextToNothing has them wait, and then serves the first of each line.
func TestTenThousandWaitersCostRedisNextToNothing(t *testing.T) {
	r := redisd.Run(t)
	n := serve(t, r, "--shutdown-timeout", "1s")
	look := dial(t, n.Addr)
	for s := range crowdSemaphores {
		look.want("OK", "SEM.CREATE", s, 1)
		look.acquire(s, "HOLDER", "first", "LEASE", longLease)
	}
	conns := line(t, n.Addr)
	trial.Await(t, func() error {
		var all int64
		for s := range crowdSemaphores {
			all += look.info(fmt.Sprint(s))["waiters"]
		}
		if all != crowdWaiters {
			return fmt.Errorf("waiters: got %d, want %d", all, crowdWaiters)
		}
		return nil
	})
	if got := figure(t, r, "connected_clients") - 1; got > mostConnections {
		t.Errorf("connections to Redis: got %v, want at most %d", got, mostConnections)
	}
	began, before := time.Now(), used(t, r)
	<-time.After(crowdWatched) // nothing is to happen meanwhile
	busy := used(t, r) - before
	share := float64(busy) / float64(time.Since(began))
	t.Logf("%d waiters on %d semaphores: %v connections to Redis, which used %.2f %% of a processor", crowdWaiters, crowdSemaphores,
		figure(t, r, "connected_clients")-1, 100*share)
	if share > 0.1 {
		t.Errorf("Redis used %v in %v, want next to nothing", busy, time.Since(began))
	}
	servesTheFirst(t, r, look, conns)
}

// first is the number of the waiter who stands first in the line of a semaphore.
func (c *client) first(semaphore int) (n int) {
	c.Helper()
	page, ok := c.do("SEM.WAITERS", semaphore, "COUNT", 1).([]any)
	if !ok || len(page) != 2 || len(page[1].([]any)) != 1 {
		c.Fatalf("SEM.WAITERS: got %v, want the first", page)
	}
	holder := fmt.Sprint(page[1].([]any)[0].([]any)[0])
	if _, err := fmt.Sscanf(holder, "w%d", &n); err != nil {
		c.Fatalf("SEM.WAITERS: got %q, want the name of a waiter", holder)
	}
	return n
}

// servesTheFirst releases all permits: the first in each line gets one, and nobody else is disturbed.
func servesTheFirst(t *testing.T, r *redisd.Server, look *client, conns []*resp.Conn) {
	t.Helper()
	var firsts []*resp.Conn
	for s := range crowdSemaphores {
		firsts = append(firsts, conns[look.first(s)])
	}
	before, began := figure(t, r, "total_commands_processed"), time.Now()
	for s := range crowdSemaphores {
		look.want(1, "SEM.RELEASE", s, "first")
	}
	for s, c := range firsts {
		if _, err := received(c); err != nil {
			t.Errorf("the first waiter of %d: %v", s, err)
		}
	}
	t.Logf("%d releases served the first of each line within %v, with %v commands of Redis, those of scripts included",
		crowdSemaphores, time.Since(began), figure(t, r, "total_commands_processed")-before)
	for s := range crowdSemaphores {
		if i := look.info(fmt.Sprint(s)); i["grants_waited"] != 1 || i["waiters"] != crowdWaiters/crowdSemaphores-1 {
			t.Errorf("semaphore %d: got %v, want one waiter served", s, i)
		}
	}
}
