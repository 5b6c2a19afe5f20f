package cluster

import (
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

// lone makes up a node with a permit in its directory, which does not run: one that never had peers, or one
// of a cluster that has an id.
func lone(t *testing.T, peers bool) (*fleet, int64) {
	t.Helper()
	f := newFleet(t, 1, 1)
	address := f.cfg["a"].PeerListen
	if !peers {
		f.edit("a", func(c *Config) { c.PeerListen, c.Join, c.BootstrapExpect = "", nil, 0 })
	}
	f.start("a")
	token := f.take("h")
	f.stop("a")
	f.edit("a", func(c *Config) { c.PeerListen, c.Join, c.BootstrapExpect = address, []string{address}, 0 })
	return f, token
}

// A cluster of one that is started to join another would lead at once: it does not start, grants nothing,
// and its directory stays what it was, so that it can be started as it should have been.
func TestClusterOfOneDoesNotStartToJoinAnother(t *testing.T) {
	for name, peers := range map[string]bool{"that never had peers": false, "that has an id": true} {
		t.Run(name, func(t *testing.T) {
			f, token := lone(t, peers)
			other := formed(t, "a", "b", "c")
			right := f.cfg["a"].Join
			f.edit("a", func(c *Config) { c.Join = append(slices.Clone(right), other.cfg["a"].Join...) })
			before := contents(t, f.cfg["a"].DataDir)

			f.refuses("a", "--join leads to cluster "+other.clusters()[0])

			if got := contents(t, f.cfg["a"].DataDir); !slices.Equal(got, before) {
				t.Errorf("the directory holds %v, want %v", got, before)
			}
			f.edit("a", func(c *Config) { c.Join = right })
			f.start("a")
			if got := f.take("h"); got != token {
				t.Errorf("token %d, want that of the grant in the directory, %d", got, token)
			}
			other.wantShape("abc")
		})
	}
}

// Two of them that are started to join each other: whichever finds the other does not start, also while
// that one is only starting.
func TestClusterOfOneIsAForeignerWhileItStarts(t *testing.T) {
	f, _ := lone(t, false)
	other, _ := lone(t, true)
	// The other one opens its directory, and does not come to its end.
	n, done := startingNode(t, other.cfg["a"])
	defer done()
	f.edit("a", func(c *Config) { c.Join = other.cfg["a"].Join })
	f.refuses("a", "--join leads to cluster "+n.clusterID())
}

// startingNode is a node that has got as far as answering who it is.
func startingNode(t *testing.T, cfg Config) (*Node, func()) {
	t.Helper()
	id, stores, err := openDirectory(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n := assemble(cfg, id, stores)
	transport, err := n.connect(n.raftConfig())
	if err != nil {
		t.Fatal(err)
	}
	return n, func() { steps(t, func() error { return shut(transport) }, n.disconnect, stores.close) }
}

// Where nobody can be reached, also where somebody listens and does not answer, a node of its own starts.
func TestClusterOfOneStartsWhereNobodyAnswers(t *testing.T) {
	f, token := lone(t, true)
	silent, err := net.Listen("tcp", freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	f.edit("a", func(c *Config) {
		c.Join = append(c.Join, freeAddress(t), silent.Addr().String(), "no-such-host.invalid:7361")
	})
	began := time.Now()
	f.start("a")
	if took := time.Since(began); took > fleetPatience/2 {
		t.Errorf("it took %v to start", took)
	}
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want %d", got, token)
	}
}

// A copy of the directory of a cluster of one would lead beside it.
func TestCopyOfAClusterOfOneDoesNotStart(t *testing.T) {
	f, _ := lone(t, true)
	f.prepare("b", 0)
	steps(t, func() error { return os.CopyFS(f.cfg["b"].DataDir, os.DirFS(f.cfg["a"].DataDir)) })
	f.start("a")
	f.take("h")
	f.refuses("b", "a copy of its data directory is in use")
}

// Empty nodes that wait to join it are no foreigners to a cluster of one.
func TestClusterOfOneStartsWhereEmptyNodesWaitForIt(t *testing.T) {
	f, _ := lone(t, true)
	f.prepare("b", 0)
	f.start("b")
	f.start("a")
	f.wantShape("ab")
}
