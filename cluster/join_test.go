package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func formed(t *testing.T, names ...string) *fleet {
	t.Helper()
	f := newFleet(t, len(names), len(names))
	f.start(names...)
	f.wantShape(strings.Join(names, ""))
	return f
}

// A new node gets the whole state, also where the log does not reach back to its beginning, and then a
// vote.
func TestNewNodeCatchesUpAndGetsAVote(t *testing.T) {
	f := formed(t, "a")
	token := f.take("h")
	if err := f.nodes["a"].Snapshot(); err != nil {
		t.Fatal(err)
	}
	f.prepare("b", 0)
	f.prepare("c", 0)
	f.start("b", "c")
	f.wantShape("abc")
	f.stop("a")
	if got := f.take("h"); got != token {
		t.Errorf("token %d without the first node, want the same grant, %d", got, token)
	}
}

func TestWaitingNodeIsAdded(t *testing.T) {
	f := formed(t, "a", "b")
	f.prepare("c", 0)
	f.edit("c", func(c *Config) { c.Join = nil })
	f.start("c")
	f.wantSaid("c", "waiting for a cluster to join")
	follower := f.nodes["a"]
	if f.leader() == "a" {
		follower = f.nodes["b"]
	}
	for range 2 { // once more does no harm
		f.eventually(func() string {
			id, err := follower.Add(f.cfg["c"].PeerListen)
			if want := f.nodes["c"].id.ID; err != nil || id != want {
				return fmt.Sprintf("added %q, %v, want %q", id, err, want)
			}
			return ""
		})
		f.wantShape("abc")
	}
}

func TestNobodyIsAddedFromWhereNobodyAnswers(t *testing.T) {
	f := formed(t, "a")
	if id, err := f.nodes["a"].Add(freeAddress(t)); err == nil {
		t.Errorf("added %q, want an error", id)
	}
	f.wantShape("a")
}

func TestNodeOfAnotherClusterIsNotAdded(t *testing.T) {
	f, other := formed(t, "a"), formed(t, "a")
	f.eventually(func() string {
		_, err := f.nodes["a"].Add(other.cfg["a"].PeerListen)
		if want := "belongs to cluster"; err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Sprintf("got %v, want an error that says %q", err, want)
		}
		return ""
	})
	f.wantShape("a")
	other.wantShape("a")
}

// A node whose disk was wiped comes back as another node: its old id is removed first.
func TestWipedNodeReplacesItself(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.take("h")
	old := f.nodes["c"].id.ID
	f.stop("c")
	f.wipe("c")
	f.start("c")
	f.wantShape("abc")
	if got := f.nodes["c"].id.ID; got == old {
		t.Error("it came back under its old id")
	}
	f.wantSaid(f.leader(), "removed a node that another replaces")
}

// The old member of a name that was given is replaced wherever the new one is, once it is dead.
func TestNodeWithAGivenNameReplacesADeadNamesake(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.edit("c", func(c *Config) { c.NodeIDGiven = true })
	f.start("a", "b", "c")
	f.wantShape("abc")
	f.wantKnown("c")
	f.prepare("d", 3)
	f.edit("d", func(c *Config) { c.NodeID, c.NodeIDGiven = f.cfg["c"].NodeID, true })
	f.start("d")
	f.wantSaid("d", "a live node is called")
	f.wantShapeOf("abc", "a", "b", "c")
	f.stop("c")
	f.wantShape("abd")
}

// Nor does it replace the namesake later, when that one is down for a moment.
func TestNodeWhoseAdditionWasRefusedAsksNoMore(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.edit("c", func(c *Config) { c.NodeIDGiven = true })
	f.start("a", "b", "c")
	f.wantShape("abc")
	f.wantKnown("c")
	f.prepare("d", 0)
	f.edit("d", func(c *Config) { c.NodeID, c.NodeIDGiven, c.Join = f.cfg["c"].NodeID, true, nil })
	f.start("d")
	f.wantSaid("d", "waiting for a cluster to join")
	if _, err := f.nodes["a"].Add(f.cfg["d"].PeerListen); err == nil || !strings.Contains(err.Error(), "a live node is called") {
		t.Fatalf("add: got %v, want it refused", err)
	}
	f.eventually(func() string {
		if id := f.nodes["d"].id.read(); id.Cluster != "" {
			return "it is still reserved for " + id.Cluster
		}
		return ""
	})
	f.stop("c")
	f.start("c")
	f.wantShapeOf("abc", "a", "b", "c")
}

// Also a leader that has never heard a dead member knows what it was called.
func TestDeadMemberIsKnownByItsNameAfterARestart(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.wantKnown("c")
	dead := f.nodes["c"].id.ID
	f.stop("c")
	f.stop("a", "b")
	f.start("a", "b")
	want := Member{
		ID: dead, Label: f.cfg["c"].NodeID, Address: f.cfg["c"].PeerListen, Role: "unreachable", Voter: true,
		ClientAddress: f.cfg["c"].ClientAdvertise, Applied: -1,
	}
	for _, name := range []string{"a", "b"} {
		f.eventually(func() string {
			if got := describedBy(f.nodes[name], dead); got != want {
				return fmt.Sprintf("%s describes c as %+v, want %+v", name, got, want)
			}
			return ""
		})
	}
	if removed, err := f.nodes["a"].Remove(f.cfg["c"].NodeID); err != nil || !removed {
		t.Errorf("remove it by its name: %v, %v, want true", removed, err)
	}
}

// wantShapeOf is wantShape for some of the nodes.
func (f *fleet) wantShapeOf(want string, names ...string) {
	f.t.Helper()
	for _, name := range names {
		f.eventually(func() string {
			if got := f.shape(name); got != want {
				return name + " sees the members " + got + ", want " + want
			}
			return ""
		})
	}
}

// wantKnown waits until every running node knows what a node is called.
func (f *fleet) wantKnown(name string) {
	f.t.Helper()
	f.eventually(func() string {
		for other, n := range f.nodes {
			if m := describedBy(n, f.nodes[name].id.ID); m.Label != f.cfg[name].NodeID {
				return other + " does not know the name of " + name
			}
		}
		return ""
	})
}

// describedBy returns what a node knows of a member.
func describedBy(n *Node, id string) Member {
	for _, m := range members(n) {
		if m.ID == id {
			return m
		}
	}
	return Member{}
}

func members(n *Node) []Member {
	all, _ := n.Members()
	return all
}

// Two live nodes cannot be reached at one address: who says so is told, and the other is left alone.
func TestNodeThatGivesAnotherNodesAddressIsRefused(t *testing.T) {
	f := formed(t, "a", "b")
	f.prepare("c", 2)
	f.edit("c", func(c *Config) { c.PeerAdvertise = f.cfg["b"].PeerListen })
	f.start("c")
	f.wantSaid("c", "give each its own --peer-advertise")
	f.wantShapeOf("ab", "a", "b")
	f.take("h")
}

func TestNodeThatTheLeaderCannotReachIsTold(t *testing.T) {
	f := formed(t, "a")
	f.prepare("b", 1)
	f.edit("b", func(c *Config) { c.PeerAdvertise = freeAddress(t) })
	f.start("b")
	f.wantSaid("b", "the leader cannot reach node")
	f.wantShapeOf("a", "a")
}

// An empty directory asks for a vote of nobody, and has none, before it has caught up.
func TestWipedNodeDoesNotVoteUnderItsOldID(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.take("h")
	f.stop("b", "c")
	f.wipe("c")
	f.edit("c", func(c *Config) { c.BootstrapExpect = 0 })
	f.start("c")
	// The old c would be the second of three votes; the new one has none to give.
	f.wantSaid("c", "waiting for the cluster to take this node")
	r := f.nodes["a"].Do([]semaphore.Request{semaphore.Acquire{Key: "k", Holder: "x", Permits: 1, Wait: 300 * time.Millisecond}})[0]
	if r.Err == nil {
		t.Errorf("one of three nodes decided with the help of an empty one: %v", r.Value)
	}
	if term := f.nodes["c"].raft.CurrentTerm(); term != 0 {
		t.Errorf("the empty node has taken part in term %d", term)
	}
	f.start("b")
	f.wantShape("abc")
}
