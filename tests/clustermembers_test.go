package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
)

// ids are the ids of the members that a node knows.
func (s *several) ids(i int) []string {
	s.Helper()
	all, err := s.list(i)
	if err != nil {
		s.Fatal(err)
	}
	var ids []string
	for _, m := range all {
		ids = append(ids, m["id"])
	}
	return ids
}

// id is that of a node that runs.
func (s *several) id(i int) string {
	s.Helper()
	self, err := s.self(i)
	if err != nil {
		s.Fatal(err)
	}
	return self["id"]
}

// A node that lost its disk is another node: it takes the place of the one that was at its address.
func TestNodeWithoutItsDiskReplacesItself(t *testing.T) {
	t.Parallel()
	s := form(t)
	lost := s.followers()[0]
	old := s.id(lost)
	c := s.dial(s.leader())
	c.want("OK", "SEM.CREATE", "pool", 1)
	held := c.acquire("pool", "HOLDER", "a", "LEASE", 600_000)

	s.kill(lost)
	s.wipe(lost)
	s.start(lost)
	s.know(3)

	for _, i := range s.running() {
		if ids := s.ids(i); slices.Contains(ids, old) || !slices.Contains(ids, s.id(lost)) {
			t.Errorf("node %d: got members %v, want %s in place of %s", i, ids, s.id(lost), old)
		}
	}
	s.dial(lost).want(1, "SEM.CHECK", "pool", "a", held.token)
	for _, i := range s.followers() { // its vote counts: with the leader it decides
		if i != lost {
			s.kill(i)
		}
	}
	s.dial(lost).want(1, "SEM.RELEASE", "pool", "a")
}

func TestDeadNodeThatIsRemovedDoesNotStartAgainOnItsDirectory(t *testing.T) {
	t.Parallel()
	s := form(t)
	dead := s.followers()[0]
	s.kill(dead)
	c := s.dial(s.followers()[0])
	c.want(1, "SEM.NODE", "REMOVE", fmt.Sprint("n", dead))
	s.know(2)
	c.want(0, "SEM.NODE", "REMOVE", fmt.Sprint("n", dead))

	s.launch(dead)
	if log := s.ended(dead); !strings.Contains(log, "this node was removed from the cluster") {
		t.Errorf("got the log\n%s\nwant that it was removed", log)
	}
	c.want("OK", "SEM.CREATE", "pool", 1)

	s.wipe(dead)
	s.start(dead)
	s.know(3)
}

// A node that is removed tells its clients before it ends; its waiters find their place at another node.
func TestLivingNodeThatIsRemovedEndsAndSaysWhy(t *testing.T) {
	for name, which := range map[string]func(s *several) int{
		"leader":   func(s *several) int { return s.leader() },
		"follower": func(s *several) int { return s.followers()[0] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := form(t, "--waiter-grace", "60s")
			removed := which(s)
			stays := slices.DeleteFunc(s.running(), func(i int) bool { return i == removed })
			look, first, second := s.dial(stays[0]), s.dial(removed), s.dial(stays[1])
			look.want("OK", "SEM.CREATE", "gate", 0)
			first.send("SEM.ACQUIRE", "gate", "HOLDER", "first", "WAIT", 600_000)
			look.wantLine("gate", "first")
			second.send("SEM.ACQUIRE", "gate", "HOLDER", "second", "WAIT", 600_000)
			look.wantLine("gate", "first", "second")

			look.want(1, "SEM.NODE", "REMOVE", fmt.Sprint("n", removed))

			first.refused("SHUTDOWN")
			first = s.dial(stays[1])
			first.send("SEM.ACQUIRE", "gate", "HOLDER", "first", "WAIT", 600_000)
			if log := s.ended(removed); !strings.Contains(log, "this node was removed from the cluster") {
				t.Errorf("got the log\n%s\nwant that it was removed", log)
			}
			s.know(2)
			look.wantLine("gate", "first", "second")
			trial.Await(t, func() error {
				if n := look.info("gate")["orphans"]; n != 0 {
					return fmt.Errorf("got %d orphans, want none", n)
				}
				return nil
			})
			look.want("[1 1 0]", "SEM.RESIZE", "gate", 1)
			first.granted()
		})
	}
}

// Its vote would count for the majority that there has to be, and never be cast.
func TestNodeThatDiesBeforeItHasAVoteGetsNone(t *testing.T) {
	t.Parallel()
	s := form(t)
	leader := s.leader()
	s.kill(s.followers()[0]) // one more that cannot be reached, and nothing could be decided
	added := s.prepare("--join", s.peers())
	s.launch(added)
	label := fmt.Sprint("n", added)
	trial.Await(t, func() error { return s.shown(leader, label, "voter", "0") })

	s.kill(added)

	trial.Await(t, func() error { return s.shown(leader, label, "role", "unreachable") })
	if err := s.shown(leader, label, "voter", "0"); err != nil {
		t.Error(err)
	}
	s.dial(leader).want("OK", "SEM.CREATE", "gate", 1)
	s.dial(leader).want(1, "SEM.NODE", "REMOVE", label)
}

// shown is nil when a node shows of another what it is wanted to.
func (s *several) shown(at int, label, field, want string) error {
	all, err := s.list(at)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one["label"] == label && one[field] == want {
			return nil
		}
	}
	return fmt.Errorf("got %v, want the %s of %s to be %s", all, field, label, want)
}
