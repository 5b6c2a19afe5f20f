package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/internal/trial"
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
		err = n.id.change(func(id *identity) error { id.Cluster = "the cluster of the test"; return nil })
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
		members.Servers = append(members.Servers, raft.Server{
			ID: raft.ServerID(n.id.ID), Address: raft.ServerAddress(n.network.Address()),
		})
	}
	if err := nodes[0].raft.BootstrapCluster(members).Error(); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		trial.Until(t, "ready", func() bool { return n.Ready() == nil })
	}
	return nodes
}

// roles returns the leader and the others.
func roles(t *testing.T, nodes []*Node) (leader *Node, followers []*Node) {
	t.Helper()
	trial.Until(t, "led by one of them", func() bool {
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

// line makes a holder stand in line for "k" through a node.
func line(t *testing.T, n *Node, holder string) *semaphore.Waiting {
	t.Helper()
	w, ok := do(t, n, forHolder(holder, time.Minute)).(*semaphore.Waiting)
	if !ok {
		t.Fatalf("%s does not stand in line", holder)
	}
	return w
}

// inform asks for the figures of "k".
func inform(t *testing.T, n *Node) *semaphore.Info {
	t.Helper()
	return do(t, n, semaphore.Inspect{Key: "k"}).(*semaphore.Info)
}

// held makes "k", whose only permit "a" has, through a node.
func held(t *testing.T, n *Node) {
	t.Helper()
	do(t, n, semaphore.Create{Key: "k", Capacity: 1})
	if _, ok := do(t, n, forHolder("a", 0)).(*semaphore.Grant); !ok {
		t.Fatal("a is not granted")
	}
}

func granted(t *testing.T, w *semaphore.Waiting) *semaphore.Grant {
	t.Helper()
	select {
	case reply := <-w.Done:
		g, ok := reply.Value.(*semaphore.Grant)
		if !ok {
			t.Fatalf("got %+v, want a grant", reply)
		}
		return g
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
		return nil
	}
}

func TestPermitMovesBetweenNodes(t *testing.T) {
	leader, followers := roles(t, several(t, 3))
	held(t, followers[0])
	first, second := line(t, followers[1], "first"), line(t, leader, "second")
	do(t, leader, semaphore.Release{Key: "k", Holder: "a"})
	if g := granted(t, first); g.Holder != "first" {
		t.Errorf("granted to %s, want first", g.Holder)
	}
	do(t, followers[0], semaphore.Release{Key: "k", Holder: "first"})
	if g := granted(t, second); g.Holder != "second" {
		t.Errorf("granted to %s, want second", g.Holder)
	}
}

func TestWaitersStayWhenLeadershipMoves(t *testing.T) {
	nodes := several(t, 3)
	leader, followers := roles(t, nodes)
	held(t, leader)
	waiting := []*semaphore.Waiting{line(t, leader, "first"), line(t, followers[0], "second"), line(t, followers[1], "third")}
	if err := leader.raft.LeadershipTransfer().Error(); err != nil {
		t.Fatal(err)
	}
	leader, _ = roles(t, nodes)
	holder := "a"
	for _, w := range waiting {
		if got := do(t, leader, semaphore.Release{Key: "k", Holder: holder}); got != semaphore.Number(1) {
			t.Fatalf("got %v for the release of %s, want 1", got, holder)
		}
		holder = granted(t, w).Holder
	}
	if holder != "third" {
		t.Errorf("granted to %s last, want third", holder)
	}
}

func TestWaitersOfANodeThatIsGoneKeepTheirPlacesForTheGrace(t *testing.T) {
	nodes := several(t, 3)
	leader, followers := roles(t, nodes)
	held(t, leader)
	line(t, followers[0], "first")
	second := line(t, followers[1], "second")
	if err := followers[0].raft.Shutdown().Error(); err != nil { // as by kill -9: no word of it to anybody
		t.Fatal(err)
	}
	followers[0].network.Close()
	trial.Until(t, "an orphan", func() bool { return inform(t, leader).Orphans == 1 })
	first := line(t, leader, "first")
	do(t, leader, semaphore.Release{Key: "k", Holder: "a"})
	if g := granted(t, first); g.Replayed {
		t.Errorf("got %+v, want the place adopted", g)
	}
	do(t, leader, semaphore.Release{Key: "k", Holder: "first"})
	granted(t, second)
}

// The node lives; only its streams are broken for longer than it takes to be given up.
func TestWaitersOfANodeThatWasGivenUpNoticeNothing(t *testing.T) {
	nodes := several(t, 3)
	leader, followers := roles(t, nodes)
	held(t, leader)
	made := forHolder("made", time.Minute)
	made.Made = true
	named := line(t, followers[0], "named")
	unnamed := do(t, followers[0], made).(*semaphore.Waiting)
	giveUp(t, leader, followers[0])
	trial.Until(t, "back in line", func() bool {
		info := inform(t, leader)
		return info.Waiters == 2 && info.Orphans == 0
	})
	do(t, leader, semaphore.Release{Key: "k", Holder: "a"})
	granted(t, named)
	do(t, leader, semaphore.Release{Key: "k", Holder: "named"})
	granted(t, unnamed)
}

// giveUp lets the leader believe that a guest is lost.
func giveUp(t *testing.T, leader, guest *Node) {
	t.Helper()
	leader.guests.mu.Lock()
	leader.guests.lose(leader.guests.all[guest.queue.incarnation])
	leader.guests.mu.Unlock()
	leader.proposer.nudge()
}

func TestWaiterOfAStoppingNodeKeepsItsPlaceElsewhere(t *testing.T) {
	nodes := several(t, 3)
	leader, followers := roles(t, nodes)
	for _, stopping := range []*Node{followers[0], leader} {
		held(t, followers[1])
		first := line(t, stopping, "first")
		line(t, followers[1], "second")
		first.Quit()
		if reply := <-first.Done; !errors.Is(reply.Err, semaphore.ErrShutdown) {
			t.Fatalf("got %+v, want SHUTDOWN", reply)
		}
		again := line(t, followers[1], "first")
		do(t, followers[1], semaphore.Release{Key: "k", Holder: "a"})
		granted(t, again)
		do(t, followers[1], semaphore.Delete{Key: "k", Force: true})
	}
}

func TestClientThatHangsUpAtAFollowerLeavesTheLine(t *testing.T) {
	leader, followers := roles(t, several(t, 3))
	held(t, leader)
	w := line(t, followers[0], "first")
	w.Leave()
	if reply := <-w.Done; reply != (semaphore.Reply{}) {
		t.Errorf("got %+v, want no permit", reply)
	}
	if got := inform(t, leader).Waiters; got != 0 {
		t.Errorf("got %d waiters, want none", got)
	}
}

func TestNodeIsNotReadyWithoutAQuorum(t *testing.T) {
	nodes := several(t, 3)
	leader, followers := roles(t, nodes)
	held(t, leader)
	if err := followers[1].Close(); err != nil {
		t.Fatal(err)
	}
	if err := leader.raft.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	leader.network.Close()
	trial.Until(t, "unready", func() bool { return followers[0].Ready() != nil })
	reply := followers[0].Do([]semaphore.Request{semaphore.Release{Key: "k", Holder: "a"}})[0]
	if !errors.Is(reply.Err, semaphore.ErrDown) {
		t.Errorf("got %+v, want CLUSTERDOWN for what nobody took", reply)
	}
}
