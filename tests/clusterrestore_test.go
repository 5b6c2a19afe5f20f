package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
)

// raft is what a node says of its part in Raft.
func (s *several) raft(i int) map[string]string {
	s.Helper()
	fields := map[string]string{}
	for line := range strings.Lines(fmt.Sprint(s.dial(i).do("INFO", "raft"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// cluster is the id of the cluster that a node is in.
func (s *several) cluster(i int) string { return s.raft(i)["raft_cluster_id"] }

// applied waits until a node has applied what another one has applied by now.
func (s *several) applied(i, of int) {
	s.Helper()
	index := func(i int) (n int64) {
		if _, err := fmt.Sscan(s.raft(i)["raft_applied_index"], &n); err != nil {
			s.Fatal(err)
		}
		return n
	}
	want := index(of)
	trial.Await(s.T, func() error {
		if got := index(i); got < want {
			return fmt.Errorf("node %d has applied %d entries, want %d", i, got, want)
		}
		return nil
	})
}

// A backup that any node wrote begins another cluster, in which everybody holds what they held and tokens
// go on growing.
func TestBackupBeginsANewCluster(t *testing.T) {
	t.Parallel()
	old := form(t)
	writer := old.followers()[0]
	c := old.dial(writer)
	c.want("OK", "SEM.CREATE", "pool", 2, "MAXHOLD", 3_600_000)
	held := c.acquire("pool", "HOLDER", "held", "LEASE", 600_000)
	c.acquire("pool", "HOLDER", "released later", "LEASE", 600_000)
	old.applied(writer, old.leader())
	backup := fmt.Sprint(c.do("SEM.NODE", "SNAPSHOT"))
	c.want(1, "SEM.RELEASE", "pool", "released later")
	after := c.acquire("pool", "HOLDER", "forgotten")

	s := &several{T: t}
	t.Cleanup(s.close)
	s.start(s.prepare(), "--restore", backup)
	c = s.dial(0)
	if err := c.books("pool", 2, 0, 0); err != nil {
		t.Error(err)
	}
	again := c.acquire("pool", "HOLDER", "held")
	if again.token != held.token || again.slot != held.slot || !again.replayed {
		t.Errorf("got %+v, want %+v again", again, held)
	}
	c.want(1, "SEM.RELEASE", "pool", "released later")
	if g := c.acquire("pool", "HOLDER", "new"); g.token <= after.token {
		t.Errorf("got token %d, want more than %d, the last of the old cluster", g.token, after.token)
	}

	for range 2 {
		s.start(s.prepare("--join", s.members[0].peer))
	}
	s.know(3)
	for _, i := range s.running() {
		s.dial(i).want(1, "SEM.CHECK", "pool", "held", held.token)
	}
	if a, b := s.cluster(0), old.cluster(0); a == b {
		t.Errorf("got cluster %s twice, want another", a)
	}
	old.dial(0).want(1, "SEM.CHECK", "pool", "forgotten", after.token)
}

// When a majority is lost for ever, one survivor begins anew with what it knows.
func TestSurvivorOfALostMajorityGoesOn(t *testing.T) {
	t.Parallel()
	s := form(t)
	c := s.dial(0)
	c.want("OK", "SEM.CREATE", "pool", 2)
	held := c.acquire("pool", "HOLDER", "held", "LEASE", 600_000)
	survivor := s.followers()[0]
	s.applied(survivor, s.leader())
	before := s.cluster(survivor)
	lost := slices.DeleteFunc(s.running(), func(i int) bool { return i == survivor })
	for _, i := range lost {
		s.kill(i)
	}
	stop(t, s.members[survivor].node)

	s.members[survivor].flags = []string{"--node-id", "survivor", "--recover-single"}
	s.start(survivor)
	c = s.dial(survivor)
	again := c.acquire("pool", "HOLDER", "held")
	if again.token != held.token || !again.replayed {
		t.Errorf("got %+v, want %+v again", again, held)
	}
	if g := c.acquire("pool", "HOLDER", "new"); g.token <= held.token {
		t.Errorf("got token %d, want more than %d", g.token, held.token)
	}
	if now := s.cluster(survivor); now == before {
		t.Errorf("got cluster %s as before, want another", now)
	}

	s.launch(lost[0]) // comes back after all, with what it had
	trial.Await(t, func() error {
		if log := s.members[lost[0]].node.Log(); len(complaints(log, before)) == 0 {
			return fmt.Errorf("got the log\n%s\nwant a complaint about another cluster", log)
		}
		return nil
	})
	s.kill(lost[0])
	s.know(1)
	for _, i := range lost {
		s.wipe(i)
		s.members[i].flags = []string{"--node-id", fmt.Sprint("n", i), "--join", s.members[survivor].peer}
		s.start(i)
	}
	s.know(3)
	s.dial(lost[0]).want(1, "SEM.CHECK", "pool", "held", held.token)
}
