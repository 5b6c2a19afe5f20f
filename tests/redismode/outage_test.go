package redismode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/redisd"
)

// hold is how long the servers of these tests hold a request while Redis cannot be reached.
const hold = "300ms"

// scene is a semaphore with one permit, a client that holds it and one that waits.
type scene struct {
	*testing.T
	redis        *redisd.Server
	node         *node.Node
	holds, waits *client
	token        int64
}

func newScene(t *testing.T, settings ...string) *scene {
	t.Helper()
	s := &scene{T: t, redis: redisd.Run(t, settings...)}
	s.node = serve(t, s.redis, "--hold", hold)
	s.holds, s.waits = dial(t, s.node.Addr), dial(t, s.node.Addr)
	s.holds.want("OK", "SEM.CREATE", "k", 1)
	s.token = s.holds.acquire("k", "HOLDER", "a", "LEASE", longLease).token
	s.waits.waits(s.holds, "k", "b", int(patience.Milliseconds()))
	return s
}

// down waits until the server has noticed that Redis is away.
func (s *scene) down() {
	s.Helper()
	c := dial(s.T, s.node.Addr)
	trial.Await(s.T, func() error {
		if section := fmt.Sprint(c.do("INFO", "redisbackend")); strings.Contains(section, "redis_state:up") {
			return fmt.Errorf("got the section %s, want Redis down", section)
		}
		return nil
	})
}

// served releases the permit, by which the waiter gets it. The request is repeated where nothing was done.
func (s *scene) served() grant {
	s.Helper()
	trial.Await(s.T, func() error {
		if got := s.holds.do("SEM.RELEASE", "k", "a"); got != int64(1) {
			return fmt.Errorf("release: got %v, want 1", got)
		}
		return nil
	})
	g := s.waits.granted()
	if g.token <= s.token {
		s.Errorf("tokens: got %d after %d, want them to grow", g.token, s.token)
	}
	s.waits.want(1, "SEM.RELEASE", "k", "b")
	balances(s.T, s.redis, 1, 0)
	return g
}

func TestWithoutRedisNothingHangsAndNothingIsDone(t *testing.T) {
	t.Parallel()
	s := newScene(t, redisd.Durable()...)
	patient := dial(t, s.node.Addr)
	sent := time.Now()
	patient.waits(s.holds, "k", "c", 2000)
	s.redis.Kill()
	s.down()
	for _, request := range [][]any{
		{"SEM.ACQUIRE", "k", "HOLDER", "d"},
		{"SEM.RELEASE", "k", "a"},
		{"SEM.RENEW", "k", "a"},
		{"SEM.CHECK", "k", "a", s.token},
		{"SEM.INFO", "k"},
		{"SEM.CREATE", "other", 1},
		{"SEM.SCAN", 0},
	} {
		began := time.Now()
		s.holds.refused("CLUSTERDOWN", request...)
		t.Logf("%v: CLUSTERDOWN after %v", request[0], time.Since(began))
	}
	// UNCERTAIN, where a call that might have served it was under way in the moment of the kill.
	reply := patient.receive()
	t.Logf("who waited for 2 s: got %v after %v", reply, time.Since(sent))
	if took := time.Since(sent); reply != nil && !isError(reply, "CLUSTERDOWN") && !isError(reply, "UNCERTAIN") || took < 2*time.Second {
		t.Errorf("who waited for 2 s: got %v after %v, want null at the end of its WAIT, or UNCERTAIN", reply, took)
	}
	s.holds.want("PONG", "PING")
	if err := s.redis.Start(); err != nil {
		t.Fatal(err)
	}
	s.served()
}

// TestRedisIsBackWithinASecond counts from when it accepts connections.
func TestRedisIsBackWithinASecond(t *testing.T) {
	t.Parallel()
	s := newScene(t, redisd.Durable()...)
	var best time.Duration
	for range 3 {
		s.redis.Kill()
		s.down()
		if err := s.redis.Start(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		trial.Await(t, func() error {
			if got := s.holds.do("SEM.CHECK", "k", "a", s.token); got != int64(1) {
				return fmt.Errorf("check: got %v, want 1", got)
			}
			return nil
		})
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	t.Logf("served %v after Redis was back, at best of three", best)
	if best > time.Second {
		t.Errorf("served %v after Redis was back, want within a second", best)
	}
	s.served()
}

func TestARedisThatComesBackEmptyHasNoSemaphores(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := s.redis.RestartEmpty(); err != nil {
		t.Fatal(err)
	}
	s.forgotten()
}

func TestAfterFlushallThereAreNoSemaphores(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ask(t, s.redis, "FLUSHALL")
	s.forgotten()
}

// forgotten is what clients see when Redis has lost everything.
func (s *scene) forgotten() {
	s.Helper()
	if reply := s.waits.receive(); !isError(reply, "NOSEM") {
		s.Errorf("who waited: got %v, want NOSEM", reply)
	}
	s.holds.want(0, "SEM.RENEW", "k", "a")
	s.holds.want(0, "SEM.RELEASE", "k", "a")
	s.holds.want(0, "SEM.CHECK", "k", "a", s.token)
	s.holds.refused("NOSEM", "SEM.ACQUIRE", "k", "HOLDER", "c")
	g := s.holds.acquire("k", "HOLDER", "c", "CAPACITY", 1)
	if g.token <= s.token {
		s.Errorf("token after everything was lost: got %d, want one above %d", g.token, s.token)
	}
	balances(s.T, s.redis, 0, 1)
	s.holds.want(1, "SEM.RELEASE", "k", "c")
}

// TestWhatASilentRedisDidIsUncertainUntilItAnswers stops the process, so that calls may yet take effect.
func TestWhatASilentRedisDidIsUncertainUntilItAnswers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.holds.want("OK", "SEM.CREATE", "free", 1)
	if err := s.redis.Pause(); err != nil {
		t.Fatal(err)
	}
	asks := dial(t, s.node.Addr)
	asks.send("SEM.ACQUIRE", "free", "HOLDER", "x", "LEASE", longLease)
	releases := dial(t, s.node.Addr)
	releases.send("SEM.RELEASE", "k", "a", "TOKEN", s.token)
	answers := []any{asks.receive(), releases.receive()}
	t.Logf("a silent Redis: acquire got %v, release got %v", answers[0], answers[1])
	for _, reply := range answers {
		if !isError(reply, "UNCERTAIN") && !isError(reply, "CLUSTERDOWN") {
			t.Errorf("a silent Redis: got %v, want UNCERTAIN or CLUSTERDOWN", reply)
		}
	}
	if e, ok := answers[0].(resp.Error); ok && e.Code() == "UNCERTAIN" && !strings.HasPrefix(string(e), "UNCERTAIN holder x") {
		t.Errorf("got %v, want the holder's name", e)
	}
	if err := s.redis.Resume(); err != nil {
		t.Fatal(err)
	}
	// Whoever was told so asks again, and then it is certain.
	trial.Await(t, func() error {
		_, err := asGrant(asks.do("SEM.ACQUIRE", "free", "HOLDER", "x", "LEASE", longLease))
		return err
	})
	asks.want(1, "SEM.RELEASE", "free", "x")
	trial.Await(t, func() error {
		if i := asks.info("free"); i["in_use"] != 0 || i["available"] != 1 {
			return fmt.Errorf("free: got %v, want its permit to be free", i)
		}
		return nil
	})
	trial.Await(t, func() error {
		if reply := s.holds.do("SEM.RELEASE", "k", "a", "TOKEN", s.token); reply != int64(0) && reply != int64(1) {
			return fmt.Errorf("release again: got %v, want 0 or 1", reply)
		}
		return nil
	})
	s.waits.granted()
	s.waits.want(1, "SEM.RELEASE", "k", "b")
	balances(t, s.redis, 1, 0)
}
