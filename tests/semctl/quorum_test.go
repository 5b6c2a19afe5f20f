package semctl

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
)

// trio is a cluster of three.
type trio struct {
	*node.Trio
	t *testing.T
}

func startTrio(t *testing.T) *trio {
	t.Helper()
	c, err := node.StartTrio(semserver, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return &trio{c, t}
}

// all are the addresses of all nodes.
func (c *trio) all() string { return strings.Join(c.Addrs(), ",") }

// at is one of them, as a server.
func (c *trio) at(i int) *server { return &server{Node: c.Nodes[i], t: c.t} }

// lead is the node that leads, as one of those that run sees it.
func (c *trio) lead(seenBy int) int {
	c.t.Helper()
	leader := -1
	trial.Await(c.t, func() error {
		for _, n := range c.at(seenBy).objects(0, "node", "list") {
			if n["role"] == "leader" {
				leader = int(n["label"].(string)[1] - '0')
				return nil
			}
		}
		return errors.New("nobody leads")
	})
	return leader
}

// knowsThatNobodyLeads waits until a node says that it cannot decide.
func (c *trio) knowsThatNobodyLeads(i int) {
	c.t.Helper()
	trial.Await(c.t, func() error {
		if text, _ := c.at(i).do("INFO", "server").(string); !strings.Contains(text, "semserver_ready:0") {
			return fmt.Errorf("got %q, want it not ready", text)
		}
		return nil
	})
}

// soon is a timeout that is up before a server without a leader has refused anything by itself (5 s).
const soon = "2s"

func TestWithoutAMajorityWorkEndsWithStatus69OrGoesOn(t *testing.T) {
	t.Parallel()
	c := startTrio(t)
	c.at(0).ok("create", "pool", "1")
	c.Nodes[1].Kill()
	c.Nodes[2].Kill()
	c.knowsThatNobodyLeads(0)

	var asked []*running
	for _, addr := range []string{c.Addrs()[0], c.all()} {
		for _, args := range [][]string{
			{"acquire", "pool"}, {"acquire", "pool", "--wait", "1h"}, {"list"}, {"info", "pool"}, {"release", "pool", "w"},
		} {
			asked = append(asked, begin(t, semctlAt(t, addr, append(args, "--timeout", soon)...)))
		}
		for status, then := range map[int]string{69: "fail", 7: "run"} {
			for _, flag := range []string{"--wait=1h", "--try"} {
				g := guard(t, addr, "exit 7", "--sem", "pool", flag, "--timeout", soon, "--on-unavailable", then).start()
				defer g.wants(status)
			}
		}
	}
	for _, r := range asked {
		o := r.end()
		if o.status != 69 || strings.Count(o.stderr, "\n") != 1 || strings.Contains(o.stderr, "not known") {
			t.Errorf("%q: got %+v, want status 69 and a line that nothing was done", r.Args, o)
		}
	}
	c.at(0).ok("node", "list")
}

func TestWaitEndsWhenTheMajorityIsLostForLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	c := startTrio(t)
	c.at(0).ok("create", "pool", "1")
	c.at(0).ok("acquire", "pool", "--holder", "first", "--lease", "1h")
	for name, addr := range map[string]string{"one": c.Addrs()[0], "all": c.all()} {
		g := guard(t, addr, "exit 7", "--sem", "pool", "--wait", "1h", "--timeout", soon, "--holder", name).start()
		defer g.wants(69)
	}
	c.at(0).await("pool", "waiters", 2)

	c.Nodes[1].Kill()
	c.Nodes[2].Kill()
}

func TestWaitSurvivesTheLossOfTheMajorityForLessThanTheTimeout(t *testing.T) {
	t.Parallel()
	c := startTrio(t)
	c.at(0).ok("create", "pool", "1")
	c.at(0).ok("acquire", "pool", "--holder", "first", "--lease", "1h")
	g := guard(t, c.all(), "exit 7", "--sem", "pool", "--wait", "1h", "--timeout", "1m").start()
	c.at(0).await("pool", "waiters", 1)

	c.Nodes[1].Kill()
	c.Nodes[2].Kill()
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}

	c.at(1).ok("release", "pool", "first")
	g.wants(7)
	c.at(2).free("pool")
}

func TestWorkGoesOnWhenTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	c := startTrio(t)
	c.at(0).ok("create", "pool", "1")
	leader := c.lead(0)
	other := (leader + 1) % 3
	first := strings.Join([]string{c.Addrs()[leader], c.Addrs()[other], c.Addrs()[(leader+2)%3]}, ",")
	holds := guard(t, first, "echo $$ > $FOLDER/pid; trap 'exit 7' TERM; while :; do sleep 0.01; done", "--sem", "pool", "--lease", "20s").start()
	pid := holds.pid("pid")
	waits := guard(t, first, "exit 8", "--sem", "pool", "--wait", "1h").start()
	c.at(other).await("pool", "waiters", 1)

	c.Nodes[leader].Kill()

	c.lead(other)
	c.at(other).await("pool", "renewals", 1) // by the holder, at a survivor
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	holds.wants(7)
	waits.wants(8)
	c.at(other).free("pool")
}

func TestCommandEndsBeforeItsLeaseWhenTheMajorityIsLost(t *testing.T) {
	t.Parallel()
	c := startTrio(t)
	g := guard(t, c.all(), "echo $$ > $FOLDER/pid; sleep 100", "--sem", "pool", "--capacity", "1", "--lease", "4s").start()
	pid := g.pid("pid")
	began := time.Now()

	c.Nodes[1].Kill()
	c.Nodes[2].Kill()

	g.wants(76)
	if passed := time.Since(began); passed > 4*time.Second && alive(pid) {
		t.Errorf("the command lives %v after the last renewal that can have been", passed)
	}
	gone(t, pid)
}
