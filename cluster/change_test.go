package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// other returns a node that does not lead.
func (f *fleet) other() *Node {
	f.t.Helper()
	leader := f.leading()
	for _, n := range f.nodes {
		if n != leader {
			return n
		}
	}
	f.t.Fatal("there is only one node")
	return nil
}

func TestFollowerIsRemovedAndLearnsIt(t *testing.T) {
	f := formed(t, "a", "b", "c")
	victim := f.other()
	name := f.letter(victim.id.ID)
	f.remove(f.leading(), victim.id.ID)
	f.wantFatal(name, "removed from the cluster by SEM.NODE REMOVE")
	if err := victim.Ready(); err == nil {
		t.Error("the removed node says that it is ready")
	}
	f.stop(name)
	if err := f.open(name); err == nil || !strings.Contains(err.Error(), "start it on an empty directory to join again") {
		t.Errorf("opened again: %v, want that it was removed", err)
	}
	f.take("h")
	f.wipe(name)
	f.start(name)
	f.wantShape("abc")
}

// remove removes a member, and is patient with nodes that cannot be reached for a moment.
func (f *fleet) remove(asked *Node, node string) {
	f.t.Helper()
	f.eventually(func() string {
		if removed, err := asked.Remove(node); err != nil || !removed {
			return fmt.Sprintf("remove %s: %v, %v, want true", node, removed, err)
		}
		return ""
	})
}

func TestMemberIsRemovedByItsNameThroughAnyNode(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.wantKnown("c")
	f.stop("c")
	f.remove(f.other(), f.cfg["c"].NodeID)
	f.wantShape("ab")
	if removed, err := f.other().Remove(f.cfg["c"].NodeID); err != nil || removed {
		t.Errorf("removed again: %v, %v, want false", removed, err)
	}
}

func TestAmbiguousNameRemovesNobody(t *testing.T) {
	f := newFleet(t, 2, 2)
	for _, name := range []string{"a", "b"} {
		f.edit(name, func(c *Config) { c.NodeID = "host" })
	}
	f.start("a", "b")
	f.wantShape("ab")
	f.wantKnown("a")
	f.wantKnown("b")
	_, err := f.nodes["a"].Remove("host")
	if err == nil || !strings.Contains(err.Error(), f.nodes["a"].id.ID) || !strings.Contains(err.Error(), f.nodes["b"].id.ID) {
		t.Errorf("got %v, want an error that names both ids", err)
	}
	f.wantShape("ab")
}

func TestLeaderThatIsRemovedHandsOverFirst(t *testing.T) {
	f := formed(t, "a", "b", "c")
	leader := f.leading()
	f.remove(leader, leader.id.ID)
	f.wantFatal(f.letter(leader.id.ID), "removed from the cluster")
	f.stop(f.letter(leader.id.ID))
	f.eventually(func() string {
		for name := range f.nodes {
			if got := f.shape(name); len(got) != 2 {
				return fmt.Sprintf("%s sees the members %q, want two", name, got)
			}
		}
		return ""
	})
	f.take("h")
}

func TestWhatWouldLoseTheMajorityIsRefused(t *testing.T) {
	f := formed(t, "a")
	if _, err := f.nodes["a"].Remove(f.nodes["a"].id.ID); err == nil {
		t.Error("the last node was removed")
	}
	f = formed(t, "a", "b", "c")
	f.stop(f.letter(f.other().id.ID))
	f.eventually(func() string {
		_, err := f.leading().Remove(f.other().id.ID)
		if err == nil {
			t.Fatal("one of two nodes that could be reached was removed")
		}
		if want := "1 of 2 voters could be reached"; !strings.Contains(err.Error(), want) {
			return fmt.Sprintf("got %v, want an error that says %q", err, want)
		}
		return ""
	})
}

func TestLeadershipIsTransferred(t *testing.T) {
	f := formed(t, "a", "b", "c")
	asked := f.nodes["a"]
	for _, heir := range []string{"a", "b", "c", "a"} {
		f.wantTransfer(asked, f.nodes[heir].id.ID, func(leads *Node) bool { return leads == f.nodes[heir] })
	}
	f.wantTransfer(asked, "", func(leads *Node) bool { return leads != asked })
	if err := asked.Transfer("nobody"); err == nil || !strings.Contains(err.Error(), `no member is called "nobody"`) {
		t.Errorf("transfer to nobody: %v, want that there is no such member", err)
	}
}

// wantTransfer asks a node to hand leadership over, again where another election has come between.
func (f *fleet) wantTransfer(asked *Node, to string, met func(leads *Node) bool) {
	f.t.Helper()
	f.eventually(func() string {
		if err := asked.Transfer(to); err != nil {
			return err.Error()
		}
		if leads := f.leading(); !met(leads) {
			return f.letter(leads.id.ID) + " leads"
		}
		return ""
	})
}

func TestNodeThatStopsHandsOver(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.eventually(func() string {
		leader := f.leading()
		if leader.HandOver(); leader.raft.State() == raft.Leader {
			return "it still leads"
		}
		return ""
	})
	f.take("h")
}

// A node of a cluster of one has nobody to hand over to, and says so at once where it was asked.
func TestNodeWithoutPeersHasNobodyToAsk(t *testing.T) {
	n := openNode(t, testConfig(t.TempDir()))
	defer closeNode(t, n)
	n.HandOver()
	if _, err := n.Add("127.0.0.1:1"); err == nil {
		t.Error("added a node to one that does not listen")
	}
	if got := members(n); len(got) != 1 || !got[0].Self || got[0].Address != "" {
		t.Errorf("members %+v, want itself, without an address", got)
	}
}

func TestMembersAreDescribedOnEveryNode(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.eventually(func() string {
		leader := f.leading().id.ID
		for name, n := range f.nodes {
			for other := range f.nodes {
				got := describedBy(n, f.nodes[other].id.ID)
				want := Member{
					ID: f.nodes[other].id.ID, Label: f.cfg[other].NodeID, Address: f.cfg[other].PeerListen,
					Role: "follower", Voter: true, Self: other == name, ClientAddress: f.cfg[other].ClientAdvertise,
				}
				if want.ID == leader {
					want.Role = "leader"
				}
				if got.Applied <= 0 {
					return fmt.Sprintf("%s does not know how far %s is", name, other)
				}
				if got.Applied = 0; got != want {
					return fmt.Sprintf("%s describes %s as %+v, want %+v", name, other, got, want)
				}
			}
		}
		return ""
	})
}
