package redismode

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/redisd"
)

func TestAReadOnlyRedisIsOneThatCannotBeReached(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	// A replica of nobody keeps what it has.
	host, port, err := net.SplitHostPort(redisd.FreeAddr())
	if err != nil {
		t.Fatal(err)
	}
	ask(t, s.redis, "REPLICAOF", host, port)
	s.holds.refused("CLUSTERDOWN", "SEM.ACQUIRE", "k", "HOLDER", "c")
	s.holds.refused("CLUSTERDOWN", "SEM.RELEASE", "k", "a")
	balances(t, s.redis, 0, 1)
	ask(t, s.redis, "REPLICAOF", "NO", "ONE")
	s.served()
}

func TestARedisThatMissesItsReplicasIsOneThatCannotBeReached(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ask(t, s.redis, "CONFIG", "SET", "min-replicas-to-write", 1)
	s.holds.refused("CLUSTERDOWN", "SEM.ACQUIRE", "k", "HOLDER", "c")
	s.holds.refused("CLUSTERDOWN", "SEM.RELEASE", "k", "a")
	balances(t, s.redis, 0, 1)
	ask(t, s.redis, "CONFIG", "SET", "min-replicas-to-write", 0)
	s.served()
}

func TestWithoutMemoryPermitsAreGivenBackAndNotTaken(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.holds.want("OK", "SEM.CREATE", "free", 2)
	s.holds.acquire("free", "HOLDER", "x", "LEASE", longLease)
	ask(t, s.redis, "CONFIG", "SET", "maxmemory", 1)
	for _, request := range [][]any{
		{"SEM.ACQUIRE", "free", "HOLDER", "y"},
		{"SEM.ACQUIRE", "free", "HOLDER", "y", "WAIT", 100},
		{"SEM.CREATE", "other", 1},
	} {
		if text := s.holds.refused("BACKEND", request...); !strings.Contains(text, "OOM") {
			t.Errorf("%v: got %q, want the words of Redis", request, text)
		}
	}
	s.holds.want(longLease, "SEM.RENEW", "free", "x")
	s.holds.want(1, "SEM.RELEASE", "free", "x")
	if i := s.holds.info("free"); i["in_use"] != 0 || i["available"] != 2 {
		t.Errorf("given back without memory: got %v, want both permits free", i)
	}
	s.holds.want(1, "SEM.RELEASE", "k", "a") // nobody can be served yet
	ask(t, s.redis, "CONFIG", "SET", "maxmemory", 0)
	s.waits.granted()
	s.waits.want(1, "SEM.RELEASE", "k", "b")
	balances(t, s.redis, 1, 0)
}

func TestFlushedScriptsAreNothingToClients(t *testing.T) {
	t.Parallel()
	const flushes, clients = 20, 6
	r := redisd.Run(t)
	n := serve(t, r)
	dial(t, n.Addr).want("OK", "SEM.CREATE", "k", 2)
	held := &room{T: t, capacity: 2}
	var over atomic.Bool
	var grants atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		c := dial(t, n.Addr).Conn
		all.Go(func() {
			for j := 0; !over.Load(); j++ {
				holder := fmt.Sprint("w", i, ".", j)
				if _, err := acquire(c, holder); err != nil {
					t.Error(err)
					return
				}
				held.enter()
				grants.Add(1)
				held.leave()
				if err := release(c, holder); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range flushes {
		before := grants.Load()
		ask(t, r, "SCRIPT", "FLUSH")
		trial.Await(t, func() error {
			if grants.Load() < before+10 && !t.Failed() {
				return errors.New("no grants after scripts were flushed")
			}
			return nil
		})
	}
	over.Store(true)
	all.Wait()
	t.Logf("%d grants over %d flushes of the scripts, and no error", grants.Load(), flushes)
	balances(t, r, 2, 0)
}

// TestAKeyOfAnotherTypeIsRefusedAndLeftAlone spoils each key of a semaphore in turn. Those that every step
// needs are always missed; those that only some do are never written over.
func TestAKeyOfAnotherTypeIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	r := redisd.Run(t)
	c := dial(t, serve(t, r).Addr)
	c.want("OK", "SEM.CREATE", "sound", 1)
	for part, always := range map[string]bool{"permits": true, "holders": true, "meta": true, "grants": false, "slots": false} {
		key := "sem:" + part + ":" + part
		c.want("OK", "SEM.CREATE", part, 2)
		c.acquire(part, "HOLDER", "a", "LEASE", longLease)
		ask(t, r, "DEL", key)
		ask(t, r, "SET", key, "mine")
		for _, request := range [][]any{
			{"SEM.RELEASE", part, "a"},
			{"SEM.ACQUIRE", part, "HOLDER", "b"},
			{"SEM.ACQUIRE", part, "HOLDER", "c", "WAIT", 100},
			{"SEM.RECONCILE", part},
			{"SEM.RESIZE", part, 3},
			{"SEM.DELETE", part},
			{"SEM.DELETE", part, "FORCE"},
		} {
			reply := c.do(request...)
			if always && !isError(reply, "WRONGTYPE") {
				t.Errorf("%s is a string: %v: got %v, want WRONGTYPE", key, request, reply)
			}
			if got := ask(t, r, "GET", key); got != "mine" {
				t.Fatalf("%s after %v: got %v, want it left alone", key, request, got)
			}
		}
		// Others are served meanwhile.
		c.acquire("sound", "HOLDER", "x")
		c.want(1, "SEM.RELEASE", "sound", "x")
	}
}

// TestKeysThatSomebodyDeletesAreMadeAnew deletes either public key under those who hold and wait.
func TestKeysThatSomebodyDeletesAreMadeAnew(t *testing.T) {
	t.Parallel()
	for _, key := range []string{permits, holders} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			r := redisd.Run(t)
			c := dial(t, serve(t, r).Addr)
			c.want("OK", "SEM.CREATE", "k", 2)
			g := c.acquire("k", "HOLDER", "a", "LEASE", longLease)
			ask(t, r, "DEL", key)
			c.do("SEM.RECONCILE", "k")
			balances(t, r, 1, 1)
			c.want(1, "SEM.CHECK", "k", "a", g.token)
			c.acquire("k", "HOLDER", "b")
			c.want("<nil>", "SEM.ACQUIRE", "k", "HOLDER", "c")
			c.want(1, "SEM.RELEASE", "k", "a")
			c.want(1, "SEM.RELEASE", "k", "b")
			balances(t, r, 2, 0)
		})
	}
}
