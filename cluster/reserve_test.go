package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// restart stops a node and starts it again.
func (f *fleet) restart(name string) *Node {
	f.t.Helper()
	f.stop(name)
	f.start(name)
	return f.nodes[name]
}

// wantCluster waits until a node is reserved for.
func (f *fleet) wantCluster(name, want string) {
	f.t.Helper()
	f.eventually(func() string {
		if got := f.nodes[name].clusterID(); got != want {
			return name + " is reserved for cluster \"" + got + "\", want \"" + want + "\""
		}
		return ""
	})
}

func reserveFor(cluster string, founder *Node) query {
	return query{Ask: askReserve, Cluster: cluster, Expect: 3, Founder: place{Node: founder.id.ID, Address: founder.network.Address()}}
}

// A node is reserved for one founder at a time, and remembers it over a restart.
func TestReservationIsExclusiveAndKept(t *testing.T) {
	f := newFleet(t, 2, 3)
	f.start("a", "b")
	a, b := f.nodes["a"], f.nodes["b"]
	if err := b.membership.engage("1111111111111111", place{Node: b.id.ID, Address: b.network.Address()}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.membership.reserve(reserveFor("1111111111111111", b)); err != nil {
		t.Fatalf("reserve a free node: %v", err)
	}
	if _, err := a.membership.reserve(reserveFor("2222222222222222", a)); err == nil {
		t.Error("it was reserved for another cluster as well")
	}
	if _, err := a.membership.reserve(reserveFor("1111111111111111", b)); err != nil {
		t.Errorf("reserve it again for the same cluster: %v", err)
	}
	a = f.restart("a")
	if got := a.clusterID(); got != "1111111111111111" {
		t.Errorf("after a restart it is reserved for %q, want the same cluster", got)
	}
}

// The founder was killed before it began the log: it comes back, and has forgotten its cluster. Who was
// reserved for it finds out.
func TestFounderThatComesBackFreesWhoWasReserved(t *testing.T) {
	f := newFleet(t, 2, 3)
	f.start("a", "b")
	a, b := f.nodes["a"], f.nodes["b"]
	if err := b.membership.engage("1111111111111111", place{Node: b.id.ID, Address: b.network.Address()}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.membership.reserve(reserveFor("1111111111111111", b)); err != nil {
		t.Fatal(err)
	}
	f.restart("b")
	f.wantCluster("b", "")
	f.wantCluster("a", "")
	f.prepare("c", 3)
	f.start("c")
	f.wantShape("abc")
}

// The founder was killed and comes back without its directory.
func TestWipedFounderFreesWhoWasReserved(t *testing.T) {
	f := newFleet(t, 2, 3)
	f.start("a", "b")
	if _, err := f.nodes["a"].membership.reserve(reserveFor("1111111111111111", f.nodes["b"])); err != nil {
		t.Fatal(err)
	}
	f.stop("b")
	f.wantCluster("a", "1111111111111111")
	f.wipe("b")
	f.start("b")
	f.wantCluster("a", "")
}

func TestSilentFounderIsGivenUp(t *testing.T) {
	f := newFleet(t, 2, 3)
	f.start("a", "b")
	b := f.nodes["b"]
	question := reserveFor("1111111111111111", b)
	f.stop("b")
	f.stop("a")
	f.edit("a", func(c *Config) { c.patience = 10 * time.Millisecond })
	f.start("a")
	if _, err := f.nodes["a"].membership.reserve(question); err != nil {
		t.Fatal(err)
	}
	f.wantCluster("a", "")
}

// The log was begun by the founder, which was killed before it said a word to the others: it goes on
// when it comes back, and they have waited for it.
func TestFounderThatIsKilledAfterItBeganTheLogGoesOn(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.start("a", "b", "c")
	f.wantShape("abc") // only to have them known: what follows plays the same once more
	cluster := f.clusters()[0]
	f.stop("a", "b", "c")
	founder := ""
	for name := range f.cfg {
		if strings.Contains(f.said[name].String(), "cluster formed") {
			founder = name
		}
	}
	for name := range f.cfg {
		if name == founder {
			continue
		}
		// As it was when it had been reserved, and no more.
		id, err := peekIdentity(f.cfg[name].DataDir)
		if err != nil {
			t.Fatal(err)
		}
		was, err := peekIdentity(f.cfg[founder].DataDir)
		if err != nil {
			t.Fatal(err)
		}
		f.wipe(name)
		id.Formed, id.Member = false, false
		id.Founder = &place{Node: was.ID, Address: f.cfg[founder].PeerListen}
		if err := id.save(f.cfg[name].DataDir + "/" + identityFile); err != nil {
			t.Fatal(err)
		}
		f.start(name)
	}
	f.start(founder)
	f.wantShape("abc")
	if got := f.clusters(); len(got) != 1 || got[0] != cluster {
		t.Errorf("clusters %q, want %s", got, cluster)
	}
}

// Founders that compete for the same nodes come to an end, with one cluster.
func TestCompetingFoundersFormOneCluster(t *testing.T) {
	f := newFleet(t, 4, 3)
	// c knows only b, and d; the others know all.
	f.edit("c", func(c *Config) { c.Join = []string{f.cfg["b"].PeerListen, f.cfg["d"].PeerListen} })
	f.edit("d", func(c *Config) { c.Join = []string{f.cfg["c"].PeerListen, f.cfg["b"].PeerListen} })
	f.start("a", "b", "c", "d")
	f.wantShape("abcd")
	if got := f.clusters(); len(got) != 1 {
		t.Errorf("clusters %q, want one", got)
	}
}

func TestNodeThatBelongsToAClusterIsNotReserved(t *testing.T) {
	f := formed(t, "a")
	a := f.nodes["a"]
	_, err := a.membership.reserve(query{Ask: askReserve, Cluster: "1111111111111111", Expect: 1, Founder: place{Node: "x", Address: "x:1"}})
	if err == nil || !strings.Contains(err.Error(), "belongs to cluster") {
		t.Errorf("got %v, want that it belongs to a cluster", err)
	}
}

// Once somebody was admitted to speak for the cluster, what it says may arrive at any time: the node
// does not leave that cluster while it runs.
func TestNodeDoesNotLeaveAClusterThatHasSpoken(t *testing.T) {
	dir := t.TempDir()
	id, err := loadIdentity(testConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	p := newPapers(dir, id)
	if err := p.speak("1"); err == nil {
		t.Error("somebody may speak for cluster 1 to a node that belongs to none")
	}
	to := func(cluster string) error {
		return p.change(func(id *identity) error { id.Cluster = cluster; return nil })
	}
	if err := errors.Join(to("1"), to("2"), p.speak("2")); err != nil {
		t.Fatal(err)
	}
	if err := p.speak("1"); err == nil {
		t.Error("somebody may speak for a cluster that the node has left")
	}
	if err := to("3"); err == nil {
		t.Error("it left a cluster that has spoken to it")
	}
	if got, err := peekIdentity(dir); err != nil || got.Cluster != "2" {
		t.Errorf("on disk: cluster %q, %v, want 2", got.Cluster, err)
	}
}

// A bootstrap that was cut short between its two writes has said nothing to anybody.
func TestBootstrapThatWasCutShortIsUndone(t *testing.T) {
	for _, store := range []string{LogStoreWAL, LogStoreBoltDB} {
		cfg := testConfig(t.TempDir())
		cfg.LogStore = store
		_, s, err := openDirectory(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.stable.SetUint64([]byte(currentTerm), 1), s.close()); err != nil {
			t.Fatal(err)
		}
		n := openNode(t, cfg)
		if got := members(n); len(got) != 1 {
			t.Errorf("%s: members %+v, want itself", store, got)
		}
		closeNode(t, n)
	}
}
