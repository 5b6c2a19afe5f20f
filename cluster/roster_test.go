package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// That a member is dead is not said before there was time to hear it, and not of what its name is known
// from a former life.
func TestMemberIsUnknownUntilThereWasTimeToHearIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &membership{roster: newRoster()}
		role := func(id string) string {
			one := Member{ID: id, Role: RoleUnreachable}
			m.describe(&one)
			return one.Role
		}
		m.roster.remember([]name{{Node: "named", Label: "n"}})
		for _, id := range []string{"new", "named"} {
			if got := role(id); got != RoleUnknown {
				t.Errorf("%s at first: got %s, want %s", id, got, RoleUnknown)
			}
		}
		m.roster.note(card{Node: "new", Role: "follower"}, time.Now())
		if got := role("new"); got != "follower" {
			t.Errorf("heard: got %s, want follower", got)
		}
		time.Sleep(freshFor + time.Second)
		for _, id := range []string{"new", "named"} {
			if got := role(id); got != RoleUnreachable {
				t.Errorf("%s, which is silent: got %s, want %s", id, got, RoleUnreachable)
			}
		}
	})
}

// wantDescribed wants that a node knows all members as they are, at once.
func (f *fleet) wantDescribed(name string) {
	f.t.Helper()
	led := false
	for _, one := range members(f.nodes[name]) {
		led = led || one.Role == "leader"
		if one.Role == RoleUnreachable || one.Role != RoleUnknown && (one.Label == "" || one.ClientAddress == "") {
			f.t.Errorf("%s says of a member that lives: %+v", name, one)
		}
	}
	if !led {
		f.t.Errorf("%s knows of no leader: %+v", name, members(f.nodes[name]))
	}
}

// wantReady waits until a node is ready.
func (f *fleet) wantReady(name string) {
	f.t.Helper()
	f.eventually(func() string {
		if err := f.nodes[name].Ready(); err != nil {
			return name + ": " + err.Error()
		}
		return ""
	})
}

func TestNodeThatIsReadyKnowsTheOthers(t *testing.T) {
	f := newFleet(t, 3, 3)
	look := func() {
		for _, name := range []string{"a", "b", "c"} {
			f.wantReady(name)
			f.wantDescribed(name)
		}
	}
	f.start("a", "b", "c")
	look()
	f.stop("a", "b", "c")
	f.start("a", "b", "c")
	look()
}

func TestNodeThatWasAddedIsKnownAtOnce(t *testing.T) {
	f := formed(t, "a", "b")
	f.wantReady("a")
	f.wantReady("b")
	asked := f.letter(f.other().id.ID)
	f.prepare("c", 0)
	f.edit("c", func(c *Config) { c.Join = nil })
	f.start("c")
	f.wantSaid("c", "waiting for a cluster to join")
	f.eventually(func() string {
		if _, err := f.nodes[asked].Add(f.cfg["c"].PeerListen); err != nil {
			return err.Error()
		}
		return ""
	})
	f.eventually(func() string { // its log is a moment behind that of the leader
		if !strings.Contains(f.shape(asked), "c") {
			return asked + " sees " + f.shape(asked)
		}
		return ""
	})
	f.wantDescribed(asked)
	f.wantDescribed(f.letter(f.leading().id.ID))
}

// A node without peers that gets an address for them has not moved from anywhere.
func TestNodeThatGetsPeersIsNotSaidToHaveMoved(t *testing.T) {
	f, _ := lone(t, false)
	f.start("a")
	f.wantAddress("a")
	f.wantSaid("a", "node has an address for others")
	if said := f.said["a"].String(); strings.Contains(said, "moved") {
		t.Errorf("it said:\n%s", said)
	}
}
