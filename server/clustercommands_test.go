package server

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// asCluster starts a server that shows the trio as a Redis Cluster.
func asCluster(t *testing.T, change func(*trio)) *rig {
	t.Helper()
	r, n := withTrio(t, func(c *Config) { c.ClusterCommands = true })
	n.change(change)
	return r
}

func TestClusterWithoutALeaderIsDown(t *testing.T) {
	c := asCluster(t, func(n *trio) { n.nodes[2].Role = RoleCandidate }).dial(t)

	for _, command := range []string{"SLOTS", "SHARDS", "NODES"} {
		if got := c.do("CLUSTER " + command); !strings.HasPrefix(got, "-CLUSTERDOWN ") {
			t.Errorf("CLUSTER %s: got %q, want CLUSTERDOWN", command, got)
		}
	}
	info := c.do("CLUSTER INFO")
	for _, want := range []string{"cluster_state:fail\r\n", "cluster_slots_ok:0\r\n", "cluster_slots_fail:16384\r\n"} {
		if !strings.Contains(info, want) {
			t.Errorf("CLUSTER INFO: got %q, want it to contain %q", info, want)
		}
	}
	c.send("CLUSTER MYID").want("$40\r\nbbbbbbbbbbbbbbbb000000000000000000000000\r\n")
}

func TestNodeStandsInForALeaderWithoutAnAddressForClients(t *testing.T) {
	c := asCluster(t, func(n *trio) { n.nodes[2].ClientAddress = "" }).dial(t)

	got := c.do("CLUSTER NODES")

	if want := " 10.0.0.2:7360@7361 myself,master - 0 0 7 connected 0-16383\n"; !strings.Contains(got, want) || strings.Contains(got, "dddd") {
		t.Errorf("got %q, want %q and nothing of the leader", got, want)
	}
}

func TestClusterWithoutAnyAddressForClientsSaysSo(t *testing.T) {
	c := asCluster(t, func(n *trio) {
		for i := range n.nodes {
			n.nodes[i].ClientAddress = ""
		}
	}).dial(t)

	c.send("CLUSTER SLOTS").want("-ERR no node has an address for clients\r\n")
	if info := c.do("CLUSTER INFO"); !strings.Contains(info, "cluster_state:fail\r\n") {
		t.Errorf("CLUSTER INFO: got %q, want the state fail", info)
	}
}

// A node that listens on every interface cannot know under which one it is reached, but by which one
// it just was.
func TestNodeOnEveryInterfaceIsShownByTheOneThatTheClientHasReached(t *testing.T) {
	for _, listens := range []string{":7360", "0.0.0.0:7360", "[::]:7360"} {
		r := asCluster(t, func(n *trio) { n.nodes[1].ClientAddress = listens })
		if got, want := r.dial(t).do("CLUSTER NODES"), " 127.0.0.1:7360@7361 myself,slave "; !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want it to contain %q", listens, got, want)
		}
	}
	client, end := net.Pipe()
	r := asCluster(t, func(n *trio) { n.nodes[1].ClientAddress = ":7360" })
	go r.ServeConn(end)
	if got, want := newClient(t, client).do("CLUSTER NODES"), " 127.0.0.1:7360@7361 myself,slave "; !strings.Contains(got, want) {
		t.Errorf("not by TCP: got %q, want it to contain %q", got, want)
	}
}

func TestNodeOnEveryInterfaceIsLeftOutByTheOthers(t *testing.T) {
	c := asCluster(t, func(n *trio) { n.nodes[0].ClientAddress = ":7360" }).dial(t)

	if got := c.do("CLUSTER NODES"); strings.Contains(got, "cccc") {
		t.Errorf("got %q, want nothing of a node whose address is not known", got)
	}
}

func TestNodeThatIsNoMemberHasNoPlaceInTheCluster(t *testing.T) {
	c := asCluster(t, func(n *trio) { n.nodes[1].Self = false }).dial(t)

	c.send("CLUSTER MYID").want("-ERR this node is no member of the cluster\r\n")
}

func TestModeFollowsTheClusterCommands(t *testing.T) {
	for mode, change := range map[string]func(*Config){
		"standalone": func(*Config) {},
		"cluster":    func(c *Config) { c.ClusterCommands = true },
	} {
		r, _ := withTrio(t, change)
		c := r.dial(t)
		if got, want := c.do("HELLO"), fmt.Sprintf("$4\r\nmode\r\n$%d\r\n%s\r\n", len(mode), mode); !strings.Contains(got, want) {
			t.Errorf("HELLO: got %q, want %q", got, want)
		}
		if got := c.do("INFO server"); !strings.Contains(got, "redis_mode:"+mode+"\r\n") {
			t.Errorf("INFO: got %q, want the mode %s", got, mode)
		}
		if got := c.do("INFO replication"); !strings.Contains(got, "role:master\r\n") {
			t.Errorf("INFO of a follower: got %q, want the role master", got)
		}
	}
}

func TestKeySlotsAreThoseOfRedis(t *testing.T) {
	for key, want := range map[string]uint16{
		"":                     0,
		"123456789":            12739,
		"foo":                  12182,
		"{foo}":                12182,
		"{foo}bar":             12182,
		"x{foo}{bar}":          12182,
		"foo{}{bar}":           8363,
		"foo{{bar}}zap":        4015,
		"foo{bar":              15278,
		"}{a}":                 15495,
		"a}b{c}":               7365,
		"{user1000}.following": 3443,
		"\x00\xff":             7920,
	} {
		if got := keySlot([]byte(key)); got != want {
			t.Errorf("%q: got %d, want %d", key, got, want)
		}
	}
}
