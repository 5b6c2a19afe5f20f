package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// nodeInBubble opens a real node whose time passes only while nothing happens.
func nodeInBubble(t *testing.T, snapshotBytes int64, test func(*testing.T, *Node)) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t.TempDir())
		cfg.SnapshotBytes = snapshotBytes
		n := openNode(t, cfg)
		defer closeNode(t, n)
		do(t, n, semaphore.Create{Key: "k", Capacity: 1})
		test(t, n)
	})
}

func snapshotsOf(t *testing.T, n *Node) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.cfg.DataDir, "snapshots"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// write makes the log grow by a number of bytes.
func write(t *testing.T, n *Node, size int) {
	t.Helper()
	for size > 0 {
		label := strings.Repeat("x", min(size, semaphore.MaxName))
		do(t, n, semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Lease: semaphore.Persist, Label: label, Fresh: true})
		size -= len(label)
	}
}

func TestSnapshotIsTakenWheneverEnoughLogHasBeenWritten(t *testing.T) {
	const enough = 64 << 10
	nodeInBubble(t, enough, func(t *testing.T, n *Node) {
		count := func(when string, want int) {
			t.Helper()
			time.Sleep(2 * snapshotLook)
			if got := snapshotsOf(t, n); len(got) != want {
				t.Fatalf("%s: snapshots %v, want %d", when, got, want)
			}
		}
		write(t, n, enough/2)
		count("after half of the log", 0)
		write(t, n, enough/2)
		count("after all of it", 1)
		write(t, n, enough/2)
		count("after half of it again", 1)
		write(t, n, enough/2)
		count("after all of it again", 2)
	})
}

// Raft's own rule would be to look every few minutes whether there are thousands of entries.
func TestNoSnapshotIsTakenForTheNumberOfEntries(t *testing.T) {
	nodeInBubble(t, 64<<20, func(t *testing.T, n *Node) {
		for range 9_000 {
			n.raft.Apply(fsm.NewBuilder(1).Seal(0, 0), 0)
		}
		if err := n.raft.Barrier(0).Error(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if got := snapshotsOf(t, n); len(got) != 0 {
			t.Errorf("snapshots %v, want none", got)
		}
	})
}

func TestHalfOfTheLogStaysBehindASnapshot(t *testing.T) {
	nodeInBubble(t, 64<<20, func(t *testing.T, n *Node) {
		const entries = 4 * trailingEntries
		for range entries {
			n.raft.Apply(fsm.NewBuilder(1).Seal(0, 0), 0)
		}
		if err := n.raft.Barrier(0).Error(); err != nil {
			t.Fatal(err)
		}
		if err := n.Snapshot(); err != nil {
			t.Fatal(err)
		}
		first, err := n.stores.log.FirstIndex()
		if err != nil {
			t.Fatal(err)
		}
		if kept := n.raft.LastIndex() - first; kept < entries/2-2 || kept > entries/2+2 {
			t.Errorf("%d entries stay, want about %d", kept, entries/2)
		}
	})
}
