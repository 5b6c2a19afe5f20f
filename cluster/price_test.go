package cluster

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// fill makes many grants of "big", and so a large state.
func fill(t *testing.T, n *Node, grants int) {
	t.Helper()
	do(t, n, semaphore.Create{Key: "big", Capacity: int64(grants)})
	const callers = 8
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for from := caller * semaphore.MaxRun; from < grants; from += callers * semaphore.MaxRun {
				var run []semaphore.Request
				for i := from; i < min(grants, from+semaphore.MaxRun); i++ {
					run = append(run, semaphore.Acquire{Key: "big", Holder: fmt.Sprint("holder ", i), Permits: 1, Lease: time.Hour})
				}
				for _, reply := range n.Do(run) {
					if _, ok := reply.Value.(*semaphore.Grant); !ok {
						t.Errorf("got %+v, want a grant", reply)
						return
					}
				}
			}
		})
	}
	work.Wait()
}

// outage waits until a permit is granted again, and returns how long that took.
func (f *fleet) outage() time.Duration {
	f.t.Helper()
	began := time.Now()
	for try := 0; ; try++ {
		for _, n := range f.nodes {
			reply := n.Do([]semaphore.Request{semaphore.Acquire{Key: "door", Holder: fmt.Sprint(try), Permits: 1, Create: true, Capacity: 1 << 20}})[0]
			if _, ok := reply.Value.(*semaphore.Grant); ok {
				return time.Since(began)
			}
			if !errors.Is(reply.Err, semaphore.ErrDown) && !errors.Is(reply.Err, semaphore.Uncertain("")) {
				f.t.Fatalf("got %+v, want a grant or no decision", reply)
			}
		}
		if time.Since(began) > 3*fleetPatience {
			f.t.Fatal("nothing is granted any more")
		}
	}
}

// Heartbeats are not answered beside what else a follower does. So while it installs a large snapshot,
// and a third node is dead, the leader hears nobody and steps down, and nothing is granted. It must be
// over when the snapshot is installed, and nothing be lost.
func TestClusterGoesOnAfterASnapshotWasInstalledWhileAnotherNodeIsDead(t *testing.T) {
	const grants = 60_000
	f := newFleet(t, 3, 3)
	f.start("a", "b", "c")
	f.wantShape("abc")
	leader := f.leader()
	var others []string
	for _, name := range []string{"a", "b", "c"} {
		if name != leader {
			others = append(others, name)
		}
	}
	behind, dead := others[0], others[1]
	f.stop(behind)
	fill(t, f.nodes[leader], grants)
	for range 2 * trailingEntries { // so that what it lacks is not in the log any more
		do(t, f.nodes[leader], semaphore.Inspect{Key: "big"})
	}
	for range 2 { // a snapshot leaves half of what was written since the last one
		if err := f.nodes[leader].Snapshot(); err != nil {
			t.Fatal(err)
		}
		do(t, f.nodes[leader], semaphore.Inspect{Key: "big"})
	}
	f.start(behind)
	f.stop(dead)
	t.Logf("nothing was granted for %v", f.outage())
	f.eventually(func() string {
		if got := f.nodes[behind].machine.published.Load().stats.Holders; got < grants {
			return fmt.Sprintf("the node that was behind knows %d grants", got)
		}
		return ""
	})
	for _, name := range []string{leader, behind} {
		if info := do(t, f.nodes[name], semaphore.Inspect{Key: "big"}).(*semaphore.Info); info.Holders != grants {
			t.Errorf("%s: got %d holders, want %d", name, info.Holders, grants)
		}
	}
}
