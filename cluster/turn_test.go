package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/semaphore"
)

// undecided is a change that Raft has not decided.
type undecided struct {
	raft.IndexFuture
	decided chan error
}

func (p undecided) Error() error { return <-p.decided }

// Whoever cannot wait for a change learns that it may still be made, and nobody is told anything else
// before it is decided.
func TestChangeThatIsNotDecidedInTimeIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &membership{turn: newTurn()}
		change := undecided{decided: make(chan error)}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := m.inTurn(short, func() error {
			return m.alter(short, func(time.Duration) raft.IndexFuture { return change })
		})
		if !errors.Is(err, errOpen) {
			t.Errorf("got %v, want %v", err, errOpen)
		}
		next, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.inTurn(next, func() error { return nil }); !errors.Is(err, errBusy) {
			t.Errorf("the next, before it is decided: %v, want %v", err, errBusy)
		}
		change.decided <- nil
		if err := m.inTurn(t.Context(), func() error { return nil }); err != nil {
			t.Errorf("the next, when it is decided: %v", err)
		}
	})
}

func TestChangeThatIsTooOldAtItsTurnIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &membership{turn: newTurn()}
		old, cancel := context.WithCancel(t.Context())
		m.turn.taken <- struct{}{}
		for range 20 {
			go func() {
				if err := m.inTurn(old, func() error { t.Error("it was made"); return nil }); !errors.Is(err, errBusy) {
					t.Errorf("got %v, want %v", err, errBusy)
				}
			}()
		}
		synctest.Wait()
		cancel()
		<-m.turn.taken
		synctest.Wait()
	})
}

func TestOutcomeOfAChangeIsNotGuessed(t *testing.T) {
	f := formed(t, "a")
	m := f.nodes["a"].membership
	refusal := errors.New("there must be one voter")
	for in, want := range map[error]error{
		raft.ErrNotLeader: errNotLeader, raft.ErrLeadershipTransferInProgress: errNotLeader,
		raft.ErrEnqueueTimeout: errBusy, raft.ErrLeadershipLost: errOpen, raft.ErrRaftShutdown: errOpen,
		refusal: refusal,
	} {
		if got := m.outcome(in); got != want {
			t.Errorf("%v: got %v, want %v", in, got, want)
		}
	}
	for _, known := range passing() { // as it comes over the wire
		if got := told(&peer.Refused{Reason: known.Error()}); got != known {
			t.Errorf("got %v, want %v", got, known)
		}
	}
}

// changes are all changes that an operator may ask for.
func changes(address, node string) map[string]func(*Node) error {
	return map[string]func(*Node) error{
		"add":      func(n *Node) error { _, err := n.Add(address); return err },
		"remove":   func(n *Node) error { _, err := n.Remove(node); return err },
		"transfer": func(n *Node) error { return n.Transfer(node) },
		"hand on":  func(n *Node) error { return n.Transfer("") },
	}
}

// wantCode wants one of some codes of an error.
func wantCode(t *testing.T, what string, err error, codes ...semaphore.Code) semaphore.Code {
	t.Helper()
	var e *semaphore.Error
	if errors.As(err, &e) {
		for _, code := range codes {
			if e.Code == code {
				return code
			}
		}
	}
	t.Errorf("%s: got %v, want an error of %v", what, err, codes)
	return ""
}

func TestChangeWithoutAMajorityEndsSoonAndDoesNothing(t *testing.T) {
	f := newFleet(t, 3, 3)
	f.edit("a", func(c *Config) { c.Hold = 200 * time.Millisecond })
	f.start("a", "b", "c")
	f.wantShape("abc")
	dead := f.nodes["b"].id.ID
	f.stop("b", "c")
	f.eventually(func() string {
		if f.leader() != "" {
			return "it still leads"
		}
		return ""
	})
	for name, change := range changes(f.cfg["b"].PeerListen, dead) {
		began := time.Now()
		wantCode(t, name, change(f.nodes["a"]), semaphore.CodeDown)
		if took := time.Since(began); took > changeTimeout {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// The majority is lost while a change is made. What is said to have done nothing has done nothing, now
// and later.
func TestChangeThatLosesItsMajorityIsNotDenied(t *testing.T) {
	f := newFleet(t, 2, 2)
	for _, name := range []string{"a", "b"} {
		f.edit(name, func(c *Config) { c.Hold, c.ElectionTimeout = 100*time.Millisecond, time.Second })
	}
	f.start("a", "b")
	f.wantShape("ab")
	f.prepare("c", 0)
	f.edit("c", func(c *Config) { c.Join = nil })
	f.start("c")
	f.wantSaid("c", "waiting for a cluster to join")
	leader := f.leading()
	other := map[string]string{"a": "b", "b": "a"}[f.letter(leader.id.ID)]
	f.nodes[other].network.Close()

	_, err := leader.Add(f.cfg["c"].PeerListen)

	code := wantCode(t, "add", err, semaphore.CodeUncertain, semaphore.CodeDown)
	f.stop(other)
	f.start(other)
	f.eventually(func() string {
		if f.leader() == "" {
			return "there is no leader"
		}
		return ""
	})
	if got := len(f.leading().membership.configuration()); got != 2 && code == semaphore.CodeDown {
		t.Errorf("%d members after a change that had done nothing, want 2", got)
	}
}

// A change that waits for another one is dropped when who asked for it has gone.
func TestChangeBehindAnotherEndsWithItsAsker(t *testing.T) {
	f := newFleet(t, 2, 2)
	for _, name := range []string{"a", "b"} {
		f.edit(name, func(c *Config) { c.Hold = 100 * time.Millisecond })
	}
	f.start("a", "b")
	f.wantShape("ab")
	leader, follower := f.leading(), f.other()
	f.prepare("c", 0)
	f.edit("c", func(c *Config) { c.Join = nil })
	f.start("c")
	select {
	case leader.membership.turn.taken <- struct{}{}:
	case <-time.After(fleetPatience):
		t.Fatal("the turn is never free")
	}
	_, err := follower.Add(f.cfg["c"].PeerListen)
	wantCode(t, "add", err, semaphore.CodeDown, semaphore.CodeUncertain) // its answer may come too late
	<-leader.membership.turn.taken
	// Another change comes through, and finds nothing of the one before.
	f.eventually(func() string {
		if err := follower.Transfer(""); err != nil {
			return fmt.Sprintf("transfer: %v", err)
		}
		return ""
	})
	f.wantShapeOf("ab", "a", "b")
}

// What is meant for one cluster is not done by another that has come to its address.
func TestChangeIsNotMadeByAnotherCluster(t *testing.T) {
	f, other := formed(t, "a"), formed(t, "a")
	m := f.nodes["a"].membership
	var removed bool
	err := m.askOwn(t.Context(), other.cfg["a"].PeerListen, query{Ask: askRemove, Node: "node-a"}, &removed)
	var unasked peer.Unasked
	if !errors.As(err, &unasked) {
		t.Errorf("got %v, want that nobody was asked", err)
	}
	if _, err := other.nodes["a"].membership.reply(t.Context(), query{Ask: askRemove, Node: "node-a", Cluster: f.clusters()[0]}); err == nil {
		t.Error("it was not refused")
	}
	other.wantShape("a")
}
