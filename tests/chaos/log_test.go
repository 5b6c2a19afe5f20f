package chaos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/chaos/internal/fleet"
	"github.com/semserver/semserver/tests/chaos/internal/proxy"
)

// logStores are those that a node may keep its log in.
func logStores() []string { return []string{"wal", "boltdb"} }

// A leader that is cut off writes entries that never count. When it is back it takes them out of its log
// again; and a node that has done so must be able to restart like any other.
func TestANodeThatTookBackEntriesRestarts(t *testing.T) {
	for _, store := range logStores() {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			f := open(t, 3, "--log-store", store)
			old := leader(t, f)
			_, term := f.Leader()
			c, atOld := dial(t, f.Addr(others(f, old)[0])), dial(t, f.Addr(old))
			c.want("OK", "SEM.CREATE", "door", 2)

			f.Net.Set(proxy.Rule{Hold: true}, proxy.Apart(3, old)...)
			atOld.start("SEM.ACQUIRE", "door", "HOLDER", "in vain")
			trial.Await(t, func() error { return leadsAmong(f, others(f, old), term) })
			g := c.acquire("door", "HOLDER", "a", "LEASE", 60_000)
			f.Net.Heal()
			trial.Await(t, func() error { return follows(f, old, others(f, old)[0]) })

			f.Kill(old)
			must(t, f.Start(old))
			must(t, f.Ready(old))
			dial(t, f.Addr(old)).want(1, "SEM.CHECK", "door", "a", g.token)
		})
	}
}

// follows reports, by no error, that a node follows, and has caught up with another one.
func follows(f *fleet.Fleet, i, other int) error {
	role, _, err := fleet.Role(f.Addr(i))
	if err != nil {
		return err
	}
	if role != "follower" {
		return fmt.Errorf("node %d is %s, want a follower", i, role)
	}
	return caughtUp(f, i, other)
}

// caughtUp reports, by no error, that a node has applied as much as another one.
func caughtUp(f *fleet.Fleet, i, other int) error {
	mine, err := fleet.Applied(f.Addr(i))
	if err != nil {
		return err
	}
	theirs, err := fleet.Applied(f.Addr(other))
	if err != nil {
		return err
	}
	if mine < theirs {
		return fmt.Errorf("node %d has applied %d entries of %d", i, mine, theirs)
	}
	return nil
}

// A follower whose disk took nothing for a while catches up when it does again.
func TestAFollowerCatchesUpWhenItsDiskIsMended(t *testing.T) {
	for _, store := range logStores() {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			f := open(t, 3, "--log-store", store)
			lead := leader(t, f)
			broken, other := others(f, lead)[0], others(f, lead)[1]
			c := dial(t, f.Addr(other))
			c.want("OK", "SEM.CREATE", "hall", 1000)
			must(t, f.BreakDisk(broken))
			for i := range 20 {
				c.acquire("hall", "HOLDER", fmt.Sprint("h", i), "LEASE", 600_000)
			}
			trial.Await(t, func() error { return noticed(f, broken) })
			must(t, f.MendDisk(broken))
			must(t, f.Start(broken)) // if it has ended for it
			must(t, f.Ready(broken))
			trial.Await(t, func() error { return caughtUp(f, broken, other) })
		})
	}
}

// noticed reports, by no error, that a node could not write entries, or has ended for it.
func noticed(f *fleet.Fleet, i int) error {
	if f.Up(i) && !strings.Contains(f.Log(i), "failed to append to logs") {
		return fmt.Errorf("node %d has not failed to write", i)
	}
	return nil
}
