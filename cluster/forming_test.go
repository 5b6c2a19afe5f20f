package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestNodesThatStartTogetherFormOneCluster(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.start("a", "b", "c")
	f.wantShape("abc")
	if got := f.clusters(); len(got) != 1 || got[0] == "" {
		t.Errorf("clusters %q, want one", got)
	}
	f.take("h")
}

func TestNothingIsFormedByTooFewNodes(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.start("a", "b")
	f.wantSaid("a", "waiting for nodes to form a cluster")
	f.wantSaid("b", "waiting for nodes to form a cluster")
	for _, name := range []string{"a", "b"} {
		if n := f.nodes[name]; n.membership.bound() {
			t.Errorf("%s is bound to cluster %s, want it empty until there are three", name, n.clusterID())
		}
	}
	f.start("c")
	f.wantShape("abc")
}

// One node more than expected is added to the cluster that the others have formed.
func TestOneNodeTooManyJoins(t *testing.T) {
	f := newFleet(t, 4, 3)
	f.start("a", "b", "c", "d")
	f.wantShape("abcd")
	if got := f.clusters(); len(got) != 1 {
		t.Errorf("clusters %q, want one", got)
	}
}

func TestNodesThatExpectDifferentlyFormNothing(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.edit("c", func(c *Config) { c.BootstrapExpect = 2 })
	f.start("a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		f.wantSaid(name, "nodes disagree on --bootstrap-expect")
		if f.nodes[name].membership.bound() {
			t.Errorf("%s has formed a cluster", name)
		}
	}
	f.stop("c")
	f.edit("c", func(c *Config) { c.BootstrapExpect = 3 })
	f.start("c")
	f.wantShape("abc")
}

func TestWrongAndSilentAddressesDoNotKeepFromForming(t *testing.T) {
	f := newFleet(t, 3, 3)
	silent := freeAddress(t)
	for _, name := range []string{"a", "b", "c"} {
		f.edit(name, func(c *Config) { c.Join = append(c.Join, silent, "no-such-host.invalid:7361", "nonsense") })
	}
	f.start("a", "b", "c")
	f.wantShape("abc")
}

// It is enough that all are given the address of one of them.
func TestNodesFindEachOtherThroughOneOfThem(t *testing.T) {
	f := newFleet(t, 4, 4)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.edit(name, func(c *Config) { c.Join = []string{f.cfg["a"].PeerListen} })
	}
	f.start("d", "c", "b", "a")
	f.wantShape("abcd")
}

func TestNodesWithOneNameFormNothing(t *testing.T) {
	f := newFleet(t, 2, 2)
	for _, name := range []string{"a", "b"} {
		f.edit(name, func(c *Config) { c.NodeID, c.NodeIDGiven = "twin", true })
	}
	f.start("a", "b")
	f.eventually(func() string {
		if !strings.Contains(f.said["a"].String()+f.said["b"].String(), "are both called") {
			return "nobody said that both are called the same"
		}
		return ""
	})
	for name, n := range f.nodes {
		if n.membership.bound() {
			t.Errorf("%s has formed a cluster", name)
		}
	}
}

func TestNodesWithOneHostNameFormACluster(t *testing.T) {
	f := newFleet(t, 2, 2)
	for _, name := range []string{"a", "b"} {
		f.edit(name, func(c *Config) { c.NodeID = "localhost" })
	}
	f.start("a", "b")
	f.wantShape("ab")
}

func TestOneExpectedNodeFormsAtOnceAndIsJoined(t *testing.T) {
	f := newFleet(t, 1, 1)
	f.start("a")
	f.wantShape("a")
	f.take("h")
	f.prepare("b", 1)
	f.start("b")
	f.wantShape("ab")
}

func TestClusterSurvivesARestartOfAllItsNodes(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.start("a", "b", "c")
	f.wantShape("abc")
	token := f.take("h")
	cluster := f.clusters()[0]
	f.stop("a", "b", "c")
	f.start("c", "b", "a")
	f.wantShape("abc")
	if got := f.clusters(); len(got) != 1 || got[0] != cluster {
		t.Errorf("clusters %q, want %s", got, cluster)
	}
	if got := f.take("h"); got != token {
		t.Errorf("token %d after the restart, want the same grant, %d", got, token)
	}
}

// formingTime is about as long as it takes to form a cluster. Nodes that talk over real sockets are disturbed
// after a part of it in real time: which moment of the forming that is, nothing tells.
const formingTime = 250 * time.Millisecond

// Nodes are stopped and started at all moments of the forming: it ends with one cluster of all of them.
func TestFormingSurvivesRestartsAtAnyMoment(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 0))
			f := newFleet(t, 4, 3)
			names := []string{"a", "b", "c", "d"}
			f.start(names...)
			for range 8 {
				time.Sleep(time.Duration(chance.Int64N(int64(formingTime))))
				f.restart(names[chance.IntN(len(names))])
			}
			f.wantShape("abcd")
			if got := f.clusters(); len(got) != 1 {
				t.Errorf("clusters %q, want one", got)
			}
			f.take("h")
		})
	}
}
