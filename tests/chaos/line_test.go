package chaos

import (
	"fmt"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/chaos/internal/fleet"
)

// queue makes a semaphore that is taken, and waiters in this order, the first at the first node and
// so on. It returns who holds the permit, and the waiters.
func queue(t *testing.T, f *fleet.Fleet, nodes ...int) (client, []client) {
	t.Helper()
	c := dial(t, f.Addr(nodes[0]))
	c.want("OK", "SEM.CREATE", "door", 1)
	c.acquire("door", "HOLDER", "x", "LEASE", 60_000)
	var waiters []client
	var names []string
	for i, node := range nodes {
		w := dial(t, f.Addr(node))
		names = append(names, fmt.Sprint("w", i))
		w.start("SEM.ACQUIRE", "door", "HOLDER", names[i], "LEASE", 60_000, "WAIT", 120_000)
		c.inLine("door", names...)
		waiters = append(waiters, w)
	}
	return c, waiters
}

// served releases one permit after another; the waiters must get it in their order.
func served(t *testing.T, c client, waiters []client, names ...string) {
	t.Helper()
	holder, token := "x", int64(0)
	for i, w := range waiters {
		c.want(1, "SEM.RELEASE", "door", holder)
		g := w.granted()
		if g.holder != names[i] || g.token <= token {
			t.Errorf("grant %d: got %+v, want %s with a token above %d", i, g, names[i], token)
		}
		holder, token = g.holder, g.token
	}
	c.want(1, "SEM.RELEASE", "door", holder)
	if got := c.info("door"); got["available"] != 1 || got["waiters"] != 0 {
		t.Errorf("in the end: got %v, want all permits available and nobody in line", got)
	}
}

func TestALineOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	f := open(t, 3)
	old := leader(t, f)
	rest := others(f, old)
	c, waiters := queue(t, f, rest[0], rest[1], rest[0], rest[1])

	f.Kill(old)

	served(t, c, waiters, "w0", "w1", "w2", "w3")
}

// Who waits through the node that dies comes back through another one, with the same holder, and has
// its place still.
func TestAWaiterKeepsItsPlaceWhenItsNodeDies(t *testing.T) {
	for name, pick := range map[string]func(f *fleet.Fleet, leader int) int{
		"the leader": func(_ *fleet.Fleet, leader int) int { return leader },
		"a follower": func(f *fleet.Fleet, leader int) int { return others(f, leader)[0] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, 3, "--waiter-grace", "60s")
			dying := pick(f, leader(t, f))
			rest := others(f, dying)
			c, waiters := queue(t, f, rest[0], dying, rest[1])

			f.Kill(dying)

			orphans := func(want int64) {
				t.Helper()
				trial.Await(t, func() error {
					if got := c.info("door"); got["orphans"] != want || got["waiters"] != 3 {
						return fmt.Errorf("got %v, want 3 waiters and %d orphans", got, want)
					}
					return nil
				})
			}
			orphans(1)
			back := dial(t, f.Addr(rest[1]))
			back.start("SEM.ACQUIRE", "door", "HOLDER", "w1", "LEASE", 60_000, "WAIT", 120_000)
			orphans(0)
			c.inLine("door", "w0", "w1", "w2")
			waiters[1] = back
			served(t, c, waiters, "w0", "w1", "w2")
		})
	}
}

func TestWhoHangsUpAtAFollowerLeavesTheLine(t *testing.T) {
	for name, hangUp := range map[string]func(c client) error{
		"close": func(c client) error { return c.Close() },
		"reset": func(c client) error { return c.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, 3)
			lead := leader(t, f)
			rest := others(f, lead)
			c, waiters := queue(t, f, lead, rest[0], rest[1])

			must(t, hangUp(waiters[1]))

			c.inLine("door", "w0", "w2")
			served(t, c, []client{waiters[0], waiters[2]}, "w0", "w2")
		})
	}
}
