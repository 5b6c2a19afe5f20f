package server

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/internal/trial"
)

// threeNodes are servers in front of one fake, which know each other, the first one as the leader.
func threeNodes(t *testing.T) ([]*rig, *trio) {
	t.Helper()
	shared := &trio{term: 1}
	var nodes []*rig
	for i := range 3 {
		r := start(t, func(c *Config) { c.Members, c.ClusterCommands = seat{shared, i}, true })
		if i > 0 {
			r.backend = nodes[0].fake
		}
		nodes = append(nodes, r)
		shared.nodes = append(shared.nodes, Member{ID: string('a' + rune(i)), ClientAddress: r.addr, Role: RoleFollower})
	}
	shared.nodes[0].Role = RoleLeader
	return nodes, shared
}

// seat is what one of several nodes sees of them.
type seat struct {
	*trio
	i int
}

func (s seat) Topology() Topology {
	t := s.trio.Topology()
	t.Nodes[s.i].Self = true
	return t
}

func clusterClient(t *testing.T, nodes []*rig, change func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	o := &redis.ClusterOptions{Addrs: []string{nodes[2].addr}}
	change(o)
	c := redis.NewClusterClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestClusterClientGoesToTheLeader(t *testing.T) {
	nodes, _ := threeNodes(t)
	c, ctx := clusterClient(t, nodes, func(*redis.ClusterOptions) {}), t.Context()

	for _, key := range []string{"a", "b", "{c}d"} { // of different slots
		if got, err := c.Do(ctx, "SEM.CREATE", key, 1).Result(); got != "OK" || err != nil {
			t.Fatalf("create %s: got %v, %v, want OK", key, got, err)
		}
		if got, err := c.Do(ctx, "SEM.ACQUIRE", key, "HOLDER", "h").Slice(); err != nil || len(got) != 5 || got[0] != "h" {
			t.Fatalf("acquire %s: got %v, %v, want a grant", key, got, err)
		}
		if got, err := c.Do(ctx, "SEM.ACQUIRE", key, "HOLDER", "other").Result(); err != redis.Nil {
			t.Fatalf("acquire %s: got %v, %v, want none", key, got, err)
		}
	}

	sem := nodes[0].table.byName["sem.acquire"].index
	if got := value(nodes[0].metrics.commands[sem]); got != 6 {
		t.Errorf("got %v of 6 requests at the leader", got)
	}
}

func TestClusterClientFollowsTheLeader(t *testing.T) {
	nodes, shared := threeNodes(t)
	c, ctx := clusterClient(t, nodes, func(*redis.ClusterOptions) {}), t.Context()
	if err := c.Do(ctx, "SEM.CREATE", "k", 1).Err(); err != nil {
		t.Fatal(err)
	}

	shared.change(func(n *trio) { n.nodes[0].Role, n.nodes[1].Role, n.term = RoleUnreachable, RoleLeader, 2 })
	c.ReloadState(ctx)

	create := nodes[1].table.byName["sem.create"].index
	trial.Until(t, "the new leader is asked", func() bool {
		if err := c.Do(ctx, "SEM.CREATE", "k", 1).Err(); err != nil {
			t.Fatal(err)
		}
		return value(nodes[1].metrics.commands[create]) > 0
	})
}

func TestClusterClientThatReadsAnywhereIsServedAnywhere(t *testing.T) {
	nodes, _ := threeNodes(t)
	c, ctx := clusterClient(t, nodes, func(o *redis.ClusterOptions) { o.ReadOnly, o.RouteRandomly = true, true }), t.Context()
	if err := c.Do(ctx, "SEM.CREATE", "k", 1).Err(); err != nil {
		t.Fatal(err)
	}
	info := nodes[0].table.byName["sem.info"].index
	served := make([]bool, len(nodes))
	for end := time.Now().Add(patience); slices.Contains(served, false) && time.Now().Before(end); {
		if m, err := c.Do(ctx, "SEM.INFO", "k").Result(); err != nil || m.(map[any]any)["capacity"] != int64(1) {
			t.Fatalf("info: got %v, %v, want the capacity 1", m, err)
		}
		for i, n := range nodes {
			served[i] = value(n.metrics.commands[info]) > 0
		}
	}
	if slices.Contains(served, false) {
		t.Errorf("served by: got %v, want every node", served)
	}
}

// Who does not ask for a cluster does not get one, from a follower as from the leader.
func TestStandaloneClientStaysWhereItIs(t *testing.T) {
	nodes, _ := threeNodes(t)
	for i, n := range nodes {
		c := redis.NewClient(&redis.Options{Addr: n.addr})
		if got, err := c.Do(t.Context(), "SEM.CREATE", "k", 1).Result(); got != "OK" || err != nil {
			t.Errorf("node %d: got %v, %v, want OK", i, got, err)
		}
		c.Close()
	}
}
