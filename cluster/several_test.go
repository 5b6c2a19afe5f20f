package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/semaphore/semtest"
)

// several opens that many nodes in this process, which form a cluster over loopback.
func several(t *testing.T, count int) []*Node {
	t.Helper()
	var nodes []*Node
	var members raft.Configuration
	for range count {
		cfg := testConfig(t.TempDir())
		cfg.PeerListen = "127.0.0.1:0"
		cfg.ElectionTimeout = 200 * time.Millisecond
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		nodes = append(nodes, n)
		members.Servers = append(members.Servers, raft.Server{
			ID: raft.ServerID(n.id.ID), Address: raft.ServerAddress(n.network.Address()),
		})
	}
	if err := nodes[0].raft.BootstrapCluster(members).Error(); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		eventually(t, "ready", func() bool { return n.Ready() == nil })
	}
	return nodes
}

// eventually waits for a condition, for as long as a slow machine may need.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !met(); {
		if time.Now().After(deadline) {
			t.Fatalf("not %s in time", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// roles returns the leader and the others.
func roles(t *testing.T, nodes []*Node) (leader *Node, followers []*Node) {
	t.Helper()
	eventually(t, "led by one of them", func() bool {
		leader, followers = nil, nil
		for _, n := range nodes {
			if n.proposer.leading() != nil {
				leader = n
			} else {
				followers = append(followers, n)
			}
		}
		return leader != nil && len(followers) == len(nodes)-1
	})
	return leader, followers
}

func TestFollowerKeepsTheContractOfAnEngine(t *testing.T) {
	semtest.Run(t, func(t *testing.T) semaphore.Backend {
		_, followers := roles(t, several(t, 3))
		return followers[0]
	})
}
