package cluster

import (
	"context"
	"os"
	"testing"
	"time"
)

// move gives a node that does not run another address, and tells nobody.
func (f *fleet) move(name string) {
	f.edit(name, func(c *Config) { c.PeerListen = freeAddress(f.t) })
}

// wantAddress waits until the configuration of all running nodes has a node where it listens now.
func (f *fleet) wantAddress(name string) {
	f.t.Helper()
	f.eventually(func() string {
		want := f.cfg[name].PeerListen
		for other, n := range f.nodes {
			if s, _ := find(n.membership.configuration(), f.nodes[name].id.ID); string(s.Address) != want {
				return other + " has " + name + " at " + string(s.Address) + ", want " + want
			}
		}
		return ""
	})
}

func TestNodeThatHasMovedIsFoundAgain(t *testing.T) {
	f := formed(t, "a", "b", "c")
	name := f.letter(f.other().id.ID)
	f.stop(name)
	f.move(name)
	f.start(name)
	f.wantAddress(name)
	f.wantShape("abc")
}

// All addresses are new at once, and no node can elect anybody before it has found the others.
func TestClusterThatHasMovedAsAWholeGoesOn(t *testing.T) {
	f := formed(t, "a", "b", "c")
	token := f.take("h")
	f.stop("a", "b", "c")
	var all []string
	for _, name := range []string{"a", "b", "c"} {
		f.move(name)
		all = append(all, f.cfg[name].PeerListen)
	}
	for _, name := range []string{"a", "b", "c"} {
		f.edit(name, func(c *Config) { c.Join = all })
	}
	f.start("a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		f.wantAddress(name)
	}
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want the same grant, %d", got, token)
	}
}

// A cluster of one without peers gets an address and an id when it is given peers, and then grows.
func TestSingleNodeGrowsIntoACluster(t *testing.T) {
	f := newFleet(t, 1, 0)
	f.edit("a", func(c *Config) { c.PeerListen, c.Join = "", nil })
	f.start("a")
	token := f.take("h")
	if got := f.nodes["a"].clusterID(); got != "" {
		t.Errorf("a node without peers belongs to cluster %q", got)
	}
	f.stop("a")
	f.move("a")
	f.start("a")
	f.wantAddress("a")
	f.prepare("b", 0)
	f.start("b")
	f.wantShape("ab")
	f.stop("b")
	f.start("b")
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want the same grant, %d", got, token)
	}
}

func TestMemberIsNotOpenedWithoutPeers(t *testing.T) {
	f := formed(t, "a", "b")
	f.stop("a", "b")
	cfg := f.cfg["a"]
	cfg.PeerListen, cfg.Join, cfg.BootstrapExpect = "", nil, 0
	wantRefusal(t, cfg, "start it with --peer-listen, or with --recover-single")
}

// A cluster that has shrunk to one node is one that needs no peers.
func TestLastMemberIsOpenedWithoutPeers(t *testing.T) {
	f := formed(t, "a")
	token := f.take("h")
	f.stop("a")
	f.edit("a", func(c *Config) { c.PeerListen, c.Join, c.BootstrapExpect = "", nil, 0 })
	f.start("a")
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want the same grant, %d", got, token)
	}
}

func TestMemberThatFindsOnlyAnotherClusterGivesUp(t *testing.T) {
	f, other := formed(t, "a", "b"), formed(t, "a")
	f.stop("a", "b")
	f.edit("a", func(c *Config) { c.Join, c.patience = other.cfg["a"].Join, time.Millisecond })
	f.start("a")
	f.wantFatal("a", "correct --join, or start on an empty directory")
	f.wantSaid("a", "an address to join belongs to another cluster")
	other.wantShapeOf("a", "a")
}

// With members of its own cluster in sight, a wrong address is only an error to be told.
func TestNodeAmongItsOwnToleratesAWrongAddress(t *testing.T) {
	f, other := formed(t, "a", "b", "c"), formed(t, "a")
	f.stop("c")
	f.edit("c", func(c *Config) {
		c.Join = append(c.Join, other.cfg["a"].PeerListen)
		c.patience = time.Millisecond
	})
	f.start("c")
	f.wantSaid("c", "an address to join belongs to another cluster")
	f.wantShape("abc")
	select {
	case err := <-f.fatal["c"]:
		t.Errorf("it gave up: %v", err)
	default:
	}
}

func TestEmptyNodeDoesNotChooseBetweenClusters(t *testing.T) {
	f, other := formed(t, "a"), formed(t, "a")
	f.prepare("b", 0)
	f.edit("b", func(c *Config) { c.Join = append(c.Join, other.cfg["a"].PeerListen) })
	f.start("b")
	f.wantSaid("b", "the addresses to join belong to different clusters")
	if got := f.nodes["b"].clusterID(); got != "" {
		t.Errorf("it is reserved for cluster %q, want none", got)
	}
}

// A copy of a data directory is not a second node.
func TestCopyOfADataDirectoryGivesUp(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.stop("c")
	f.prepare("d", 3)
	if err := os.CopyFS(f.cfg["d"].DataDir, os.DirFS(f.cfg["c"].DataDir)); err != nil {
		t.Fatal(err)
	}
	f.start("c")
	f.wantShape("abc")
	f.start("d")
	f.wantFatal("d", "a copy of its data directory is in use")
}

// What takes long is done beside the care for the membership: others are asked after all the same.
func TestLongChangeDoesNotKeepANodeFromKnowingTheOthers(t *testing.T) {
	f := formed(t, "a", "b")
	leader := f.leading()
	m := leader.membership
	held, release := make(chan struct{}), make(chan struct{})
	f.eventually(func() string {
		begun := m.aside(m.ctx, "", func(context.Context) error { close(held); <-release; return nil })
		if !begun {
			return "something else is under way"
		}
		return ""
	})
	defer close(release)
	<-held
	other := f.other().id.ID
	began := time.Now()
	f.eventually(func() string {
		if !m.roster.heardSince(other, began) {
			return "the other node was not heard"
		}
		return ""
	})
}
