package redisbackend

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/semaphore/semtest"
	"github.com/semserver/semserver/tests/redisd"
)

// openAt is an engine on the Redis that a URL names, until the end of the test.
func openAt(t testing.TB, url string, change ...func(*Config)) *Engine {
	t.Helper()
	target, err := link.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(target)
	for _, c := range change {
		c(&cfg)
	}
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func clusterURL(c *redisd.Cluster) string { return "redis-cluster://" + list(c.Addrs()) }

func sentinelURL(s *redisd.Sentinels) string {
	return fmt.Sprintf("redis-sentinel://%s/%s", list(s.Addrs()), redisd.Master)
}

func list(addrs []string) string {
	text := addrs[0]
	for _, a := range addrs[1:] {
		text += "," + a
	}
	return text
}

func TestARedisClusterIsABackend(t *testing.T) {
	bounds := semtest.Bounds{Capacity: script.MaxCapacity, Permits: script.MaxPermits}
	c := redisd.RunCluster(t)
	semtest.RunWithin(t, bounds, func(t *testing.T) semaphore.Backend { return openAt(t, clusterURL(c)) })
}

func TestServersOfARedisClusterWakeEachOther(t *testing.T) {
	c := redisd.RunCluster(t)
	first, second := openAt(t, clusterURL(c)), openAt(t, clusterURL(c))
	create(t, first, "k", 1)
	one(first, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1})
	w := wait(t, second, "b", time.Minute)
	<-time.After(300 * time.Millisecond) // it subscribes
	began := time.Now()
	release(t, first, "a")
	granted(t, w)
	t.Logf("served by another server after %v", time.Since(began))
}

// load has clients acquire and release through several servers, until the returned function is called,
// which returns how many grants there were. Outcomes that are not known do not count.
func load(t *testing.T, all []*Engine, keys int) func() int64 {
	var grants, errors atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for n := range 12 {
		clients.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				key, holder := fmt.Sprint("k", (n+round)%keys), fmt.Sprint(n, ".", round)
				r := acquire(all[n%len(all)], semaphore.Acquire{Key: key, Holder: holder, Permits: 1, Wait: 10 * time.Second, Lease: 5 * time.Second})
				if r.Err != nil {
					errors.Add(1)
					continue
				}
				if r.Value == nil {
					t.Errorf("%s: got no permit in 10 s, want one", holder)
					continue
				}
				grants.Add(1)
				one(all[n%len(all)], semaphore.Release{Key: key, Holder: holder})
			}
		})
	}
	return func() int64 {
		close(stop)
		clients.Wait()
		t.Logf("%d grants, %d errors", grants.Load(), errors.Load())
		return grants.Load()
	}
}

// balanced checks that, after one reconcile, the books of all semaphores balance once leases have ended.
func balanced(t *testing.T, e *Engine, keys int, capacity int64) {
	t.Helper()
	for n := range keys {
		key := fmt.Sprint("k", n)
		trial.Until(t, "all free", func() bool {
			r := one(e, semaphore.Reconcile{Key: key})
			i, ok := one(e, semaphore.Inspect{Key: key}).Value.(*semaphore.Info)
			return r.Err == nil && ok && i.Available == capacity && i.Missing == 0 && i.Surplus == 0
		})
	}
}

func TestLoadGoesOnThroughAReshardingAndAFailoverOfARedisCluster(t *testing.T) {
	c := redisd.RunCluster(t)
	all := []*Engine{openAt(t, clusterURL(c)), openAt(t, clusterURL(c))}
	for n := range 4 {
		create(t, all[0], fmt.Sprint("k", n), 2)
	}
	stop := load(t, all, 4)
	slot, err := c.Slot("sem:{k0}:permits")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner("sem:{k0}:permits")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers[:3] {
		if s != owner {
			if err := c.Reshard(slot, s); err != nil {
				t.Fatal(err)
			}
			owner = s
			break
		}
	}
	<-time.After(500 * time.Millisecond)
	replica, err := c.Replica(owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(replica); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	if got := stop(); got == 0 {
		t.Error("grants: got 0, want some")
	}
	balanced(t, all[1], 4, 2)
}

func TestLoadGoesOnThroughAFailoverBySentinel(t *testing.T) {
	s := redisd.RunSentinels(t)
	all := []*Engine{openAt(t, sentinelURL(s)), openAt(t, sentinelURL(s))}
	for n := range 4 {
		create(t, all[0], fmt.Sprint("k", n), 2)
	}
	stop := load(t, all, 4)
	<-time.After(300 * time.Millisecond)
	old, err := s.Leader()
	if err != nil {
		t.Fatal(err)
	}
	old.Kill()
	if err := s.Moved(old); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	if got := stop(); got == 0 {
		t.Error("grants: got 0, want some")
	}
	balanced(t, all[1], 4, 2)
}
