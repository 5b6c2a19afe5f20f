package client

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// trio is a cluster of three, and an observer at the last of them.
type trio struct {
	*bench
	nodes *node.Trio
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	nodes, err := node.StartTrio(binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Kill)
	look, err := resp.Dial(nodes.Nodes[2].Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = look.Close() })
	return &trio{&bench{t, nodes.Nodes[2], look}, nodes}
}

// lead has one of the others than the observer's node lead, and returns its number.
func (c *trio) lead() int {
	c.Helper()
	trial.Await(c, func() error {
		if _, err := c.look.Do("SEM.NODE", "TRANSFER", "n0"); err != nil {
			return err
		}
		if reply, err := c.look.Do("INFO", "raft"); err != nil || !strings.Contains(reply.(string), "raft_leader:127.0.6.1:") {
			return errors.New("n0 does not lead")
		}
		return nil
	})
	return 0
}

// impatient is a client of all nodes that gives up soon.
func (c *trio) impatient() *client.Client {
	c.Helper()
	return c.configured(client.Config{Addrs: c.nodes.Addrs(), Patience: 2 * time.Second})
}

func TestPermitsAndWaitsSurviveTheLossOfTheLeader(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	leader := c.lead()
	all := c.client(c.nodes.Addrs()...)
	p := c.acquire(all, "loader", client.Capacity(1), client.Lease(15*time.Second))
	next := c.start(t.Context(), all, "loader", client.Wait(time.Minute), client.Lease(15*time.Second))
	c.want("loader", "waiters", 1)

	c.nodes.Nodes[leader].Kill()

	c.want("loader", "renewals", 1)
	c.want("loader", "waiters", 1) // under the same holder, at another node
	c.release(p)
	q, err := c.answer(next)
	if err != nil {
		t.Fatalf("the wait: got %v, want a permit", err)
	}
	if q.Token() <= p.Token() {
		t.Errorf("got token %d after %d, want a larger one", q.Token(), p.Token())
	}
	c.release(q)
	c.want("loader", "expirations", 0)
}

func TestNobodyWhoCanDecideIsUnavailable(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	all := c.impatient()
	p := c.acquire(all, "loader", client.Capacity(1), client.Persist(), client.Holder("first"))
	waits := c.start(t.Context(), all, "loader", client.Wait(time.Hour))
	goesOn := c.start(t.Context(), all, "loader", client.Wait(time.Hour), client.WhenUnavailable(client.FailOpen))
	c.want("loader", "waiters", 2)

	c.nodes.Nodes[0].Kill()
	c.nodes.Nodes[1].Kill()

	if _, err := c.answer(waits); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("in line: got %v, want %v", err, client.ErrUnavailable)
	}
	if got, err := c.answer(goesOn); err != nil || got.Guarded() {
		t.Errorf("in line, with FailOpen: got %v, want a permit that guards nothing", err)
	}
	if _, err := all.Acquire(t.Context(), "loader"); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("now: got %v, want %v", err, client.ErrUnavailable)
	}
	if _, err := all.Call(t.Context(), "SEM.INFO", "loader"); !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, &client.Error{Code: "CLUSTERDOWN"}) {
		t.Errorf("a call: got %v, want %v for lack of a leader", err, client.ErrUnavailable)
	}
	if err := p.Detach(); err != nil {
		t.Errorf("the permit without end: got %v, want it held", err)
	}
}
