package tests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/redisd"
)

// startRedis runs a server whose semaphores are in a Redis, for the length of the test.
func startRedis(t *testing.T, url string, flags ...string) *node.Node {
	t.Helper()
	n := startOn(t, "127.0.0.1:0", "", append([]string{"--redis", url}, flags...)...)
	t.Cleanup(func() { stop(t, n) })
	return n
}

// sentinelURL and clusterURL say where these are.
func sentinelURL(s *redisd.Sentinels) string {
	return "redis-sentinel://" + strings.Join(s.Addrs(), ",") + "/" + redisd.Master
}

func clusterURL(c *redisd.Cluster) string { return "redis-cluster://" + strings.Join(c.Addrs(), ",") }

// pair is a client that holds the one permit of a semaphore, and one that waits for it.
type pair struct {
	name         string
	holds, waits *client
	token        int64
}

// oneWaits makes a semaphore with a holder and a waiter.
func oneWaits(t *testing.T, n *node.Node, name string) pair {
	t.Helper()
	p := pair{name: name, holds: dial(t, n), waits: dial(t, n)}
	p.holds.want("OK", "SEM.CREATE", name, 1)
	p.token = p.holds.acquire(name, "HOLDER", "a", "LEASE", 600_000).token
	p.waits.send("SEM.ACQUIRE", name, "HOLDER", "b", "WAIT", 60_000)
	joined(t, p.holds, name, 1)
	return p
}

// handsOver has the holder release, as soon as that can be done, and the waiter granted.
func (p pair) handsOver(t *testing.T) {
	t.Helper()
	uncertain := false // whether an earlier one may have done it
	trial.Await(t, func() error {
		got := p.holds.do("SEM.RELEASE", p.name, "a", "TOKEN", p.token)
		if e, refused := got.(resp.Error); refused && e.Code() == "UNCERTAIN" {
			uncertain = true
		}
		if got == int64(1) || uncertain && got == int64(0) {
			return nil
		}
		return fmt.Errorf("release: got %v, want 1", got)
	})
	if g := p.waits.granted(); g.token <= p.token {
		t.Errorf("%s: got token %d after %d, want it to grow", p.name, g.token, p.token)
	}
	p.waits.want(1, "SEM.RELEASE", p.name, "b")
}

func TestEveryDeploymentOfRedisServes(t *testing.T) {
	t.Parallel()
	one := redisd.Run(t)
	for deployment, url := range map[string]string{
		"standalone": "redis://" + one.Addr,
		"sentinel":   sentinelURL(redisd.RunSentinels(t)),
		"cluster":    clusterURL(redisd.RunCluster(t)),
	} {
		n := startRedis(t, url)
		for i := range 5 {
			oneWaits(t, n, fmt.Sprintf("pool %d", i)).handsOver(t)
		}
		c := dial(t, n)
		if info := fmt.Sprint(c.do("INFO", "redisbackend")); !strings.Contains(info, "redis_deployment:"+deployment) || !strings.Contains(info, "redis_state:up") {
			t.Errorf("%s: got the section %s", deployment, info)
		}
		c.send("SEM.NODE", "LIST")
		c.refused("ERR")
		c.send("SEM.NODE", "SNAPSHOT")
		c.refused("ERR")
	}
	if got, err := one.Do("LLEN", "sem:pool 0:permits"); got != int64(1) || err != nil {
		t.Errorf("the List of free permits: got %v, %v, want 1", got, err)
	}
}

// rights is the command in docs/redis.md that makes a user for semserver, with this password.
func rights(t *testing.T, password string) []any {
	t.Helper()
	text, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "ACL SETUSER ") {
			var args []any
			for _, word := range strings.Fields(strings.Replace(command, "PASSWORD", password, 1)) {
				args = append(args, word)
			}
			return args
		}
	}
	t.Fatal("docs/redis.md has no ACL SETUSER")
	return nil
}

func TestTheRightsInTheDocumentationSuffice(t *testing.T) {
	t.Parallel()
	one, cluster := redisd.Run(t), redisd.RunCluster(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range append(cluster.Servers, one) {
		if _, err := r.Do(rights(t, "secret")...); err != nil {
			t.Fatal(err)
		}
	}
	for _, url := range []string{"redis://" + one.Addr, clusterURL(cluster)} {
		n := startRedis(t, url, "--redis-username", "semserver", "--redis-password-file", file, "--reconcile-every", "100ms")
		for i := range 5 {
			oneWaits(t, n, fmt.Sprintf("pool %d", i)).handsOver(t)
		}
		c := dial(t, n)
		c.want(0, "SEM.RECONCILE", "pool 0")
		c.want("[1 0 1]", "SEM.RESIZE", "pool 0", 1)
		if got := c.names(); len(got) != 5 {
			t.Errorf("%s: got %q, want five semaphores", url, got)
		}
		c.want(1, "SEM.DELETE", "pool 0")
		// The periodic pass has had its turn, and there is nothing that it was not allowed to do.
		trial.Await(t, func() error {
			if i := strings.Index(fmt.Sprint(c.do("INFO", "redisbackend")), "redis_calls_refused:0"); i < 0 {
				return errors.New("got calls refused, want none")
			}
			return nil
		})
		if log := n.Log(); strings.Contains(log, "NOPERM") {
			t.Errorf("%s: got the log\n%s", url, log)
		}
	}
	if log, err := one.Do("ACL", "LOG"); err != nil || len(log.([]any)) > 0 {
		t.Errorf("what was denied: got %v, %v, want nothing", log, err)
	}
	for _, r := range cluster.Servers {
		if log, err := r.Do("ACL", "LOG"); err != nil || len(log.([]any)) > 0 {
			t.Errorf("what was denied: got %v, %v, want nothing", log, err)
		}
	}
}

// names are all semaphores that SEM.SCAN finds.
func (c *client) names() []string {
	c.Helper()
	var all []string
	for cursor := any(0); ; {
		page, ok := c.do("SEM.SCAN", cursor, "COUNT", 100).([]any)
		if !ok || len(page) != 2 {
			c.Fatalf("SEM.SCAN: got %v, want a page", page)
		}
		for _, name := range page[1].([]any) {
			all = append(all, fmt.Sprint(name))
		}
		if cursor = page[0]; fmt.Sprint(cursor) == "0" {
			return all
		}
	}
}

func TestWaitersOutliveARestartOfRedis(t *testing.T) {
	t.Parallel()
	r := redisd.Run(t, redisd.Durable()...)
	n := startRedis(t, "redis://"+r.Addr, "--hold", "100ms")
	p := oneWaits(t, n, "pool")

	r.Kill()
	trial.Await(t, func() error {
		reply := p.holds.do("SEM.ACQUIRE", "pool", "HOLDER", "c")
		if e, ok := reply.(resp.Error); !ok || e.Code() != "CLUSTERDOWN" {
			return fmt.Errorf("without Redis: got %v, want CLUSTERDOWN", reply)
		}
		return nil
	})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}

	p.handsOver(t)
}

func TestTheServerIsNotReadyWithoutRedis(t *testing.T) {
	t.Parallel()
	r := redisd.Run(t)
	n := startRedis(t, "redis://"+r.Addr)
	state := func(want bool) func() error {
		return func() error {
			info := fmt.Sprint(dial(t, n).do("INFO", "redisbackend"))
			if up := strings.Contains(info, "redis_state:up"); up != want {
				return errors.New("got the section " + info)
			}
			return nil
		}
	}
	trial.Await(t, state(true))
	r.Kill()
	trial.Await(t, state(false))
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	trial.Await(t, state(true))
}

func TestAFailoverBySentinelsKeepsWaiters(t *testing.T) {
	t.Parallel()
	s := redisd.RunSentinels(t)
	n := startRedis(t, sentinelURL(s))
	p := oneWaits(t, n, "pool")
	old, err := s.Leader()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Do("WAIT", 2, 1000); err != nil {
		t.Fatal(err)
	}

	old.Kill()
	if err := s.Moved(old); err != nil {
		t.Fatal(err)
	}

	p.handsOver(t)
}

func TestASemaphoreWhoseSlotMovesGoesOn(t *testing.T) {
	t.Parallel()
	c := redisd.RunCluster(t)
	n := startRedis(t, clusterURL(c))
	p := oneWaits(t, n, "pool")
	slot, err := c.Slot("sem:{pool}:permits")
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.Owner("sem:{pool}:permits")
	if err != nil {
		t.Fatal(err)
	}
	to := c.Servers[(slices.Index(c.Servers, from)+1)%3]

	if err := c.Reshard(slot, to); err != nil {
		t.Fatal(err)
	}

	p.handsOver(t)
}

func TestAServerThatIsKilledLeavesItsGrantsToTheirLeases(t *testing.T) {
	t.Parallel()
	r := redisd.Run(t)
	n := startOn(t, "127.0.0.1:0", "", "--redis", "redis://"+r.Addr)
	dial(t, n).want("OK", "SEM.CREATE", "pool", 1)
	g := dial(t, n).acquire("pool", "HOLDER", "a", "LEASE", 600_000)
	n.Kill()

	again := dial(t, startRedis(t, "redis://"+r.Addr))

	if got := again.acquire("pool", "HOLDER", "a"); got.token != g.token || !got.replayed {
		t.Errorf("the same holder: got %+v, want the grant %+v again", got, g)
	}
	began := time.Now()
	if got := again.do("SEM.ACQUIRE", "pool", "HOLDER", "b", "WAIT", 300); got != nil || time.Since(began) < 300*time.Millisecond {
		t.Errorf("another holder: got %v after %v, want none after its WAIT", got, time.Since(began))
	}
	again.want(1, "SEM.RELEASE", "pool", "a", "TOKEN", g.token)
}
