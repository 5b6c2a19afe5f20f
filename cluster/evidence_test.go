package cluster

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/semaphore"
)

// crashed makes of a stopped node's directory what a crash leaves.
func crashed(t *testing.T, dir string) {
	t.Helper()
	if err := removeDurably(filepath.Join(dir, stoppedFile)); err != nil {
		t.Fatal(err)
	}
}

// emptyLog removes all entries of a log, as if its files had been lost.
func emptyLog(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "0*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments: %v, %v", segments, err)
	}
	for _, path := range segments {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// refuses opens a node's directory and wants an error.
func (f *fleet) refuses(name, want string) {
	f.t.Helper()
	if err := f.open(name); err == nil || !strings.Contains(err.Error(), want) {
		f.t.Fatalf("open %s: %v, want an error that says %q", name, err, want)
	}
}

// What a member has forgotten may be a vote, or what the others count on: it does not start under its
// old id, and joins anew when its directory is emptied.
func TestMemberWithoutItsLogDoesNotStart(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, n *Node){
		"after a stop":     func(*testing.T, *Node) {},
		"after a crash":    func(t *testing.T, n *Node) { crashed(t, n.cfg.DataDir) },
		"after a snapshot": func(t *testing.T, n *Node) { crashed(t, n.cfg.DataDir) },
	} {
		t.Run(name, func(t *testing.T) {
			f := formed(t, "a", "b", "c")
			f.take("h")
			victim := f.other()
			letter := f.letter(victim.id.ID)
			f.wantApplied(letter)
			if name == "after a snapshot" {
				if err := victim.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
			f.stop(letter)
			lose(t, victim)
			emptyLog(t, victim.cfg.DataDir)
			f.refuses(letter, "empty the directory and start again: the node joins as a new one")
			f.wipe(letter)
			f.start(letter)
			f.wantShape("abc")
		})
	}
}

// wantApplied waits until a node has applied what the leader has.
func (f *fleet) wantApplied(name string) {
	f.t.Helper()
	f.eventually(func() string {
		if f.nodes[name].raft.AppliedIndex() < f.leading().raft.CommitIndex() {
			return name + " is behind"
		}
		return ""
	})
}

func TestMemberWithoutItsVotesDoesNotStart(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.take("h")
	name := f.letter(f.other().id.ID)
	f.wantApplied(name)
	f.stop(name)
	crashed(t, f.cfg[name].DataDir)
	if err := os.Remove(filepath.Join(f.cfg[name].DataDir, stableFile)); err != nil {
		t.Fatal(err)
	}
	f.refuses(name, "votes are forgotten")
}

// A member that got a snapshot has nothing in its log for a while. That is no loss, whenever it is
// killed.
func TestMemberThatGotASnapshotStarts(t *testing.T) {
	for _, store := range []string{LogStoreWAL, LogStoreBoltDB} {
		t.Run(store, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.LogStore = store
			n := openNode(t, cfg)
			do(t, n, semaphore.Create{Key: "k", Capacity: 1})
			if err := n.Snapshot(); err != nil {
				t.Fatal(err)
			}
			meta, source, err := newestSnapshot(n)
			if err != nil {
				t.Fatal(err)
			}
			defer source.Close()
			last := n.raft.LastIndex()

			// As raft does when a leader sends a snapshot that is ahead of the log, up to where it
			// would remove the log.
			other := testConfig(t.TempDir())
			other.LogStore = store
			id, s, err := openDirectory(other)
			if err != nil {
				t.Fatal(err)
			}
			log, snapshots := s.noted(newPapers(other.DataDir, id))
			members := raft.Configuration{Servers: []raft.Server{
				{ID: raft.ServerID(id.ID), Address: "here"}, {ID: "another", Address: "there"},
			}}
			steps(t,
				func() error { return s.stable.SetUint64([]byte(currentTerm), meta.Term) },
				func() error { return log.StoreLogs([]*raft.Log{{Index: 1, Term: 1, Type: raft.LogNoop}}) },
				func() error { return copySnapshot(snapshots, last+100, meta.Term, members, source) },
				s.close,
			)
			id, s, err = openDirectory(other)
			if err != nil {
				t.Fatalf("with an installed snapshot: %v", err)
			}
			log, _ = s.noted(newPapers(other.DataDir, id))
			steps(t,
				func() error { return s.enter(other.DataDir) },
				func() error {
					return log.StoreLogs([]*raft.Log{{Index: last + 101, Term: meta.Term, Type: raft.LogNoop}})
				},
				s.close,
			)
			id, s, err = openDirectory(other)
			if err != nil {
				t.Fatalf("with a log that goes on behind the snapshot: %v", err)
			}
			// From now on, that the log ends before the snapshot is a loss.
			steps(t, func() error { return s.log.DeleteRange(last+101, last+101) }, s.close)
			if _, s, err = openDirectory(other); err == nil {
				steps(t, s.close)
				t.Error("opened a log that had gone on, and does not any more")
			}
			closeNode(t, n)
		})
	}
}

func steps(t *testing.T, all ...func() error) {
	t.Helper()
	for i, step := range all {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func newestSnapshot(n *Node) (*raft.SnapshotMeta, io.ReadCloser, error) {
	all, err := n.stores.snapshots.List()
	if err != nil {
		return nil, nil, err
	}
	return n.stores.snapshots.Open(all[0].ID)
}

func copySnapshot(to raft.SnapshotStore, index, term uint64, members raft.Configuration, from io.Reader) error {
	_, transport := raft.NewInmemTransport("")
	sink, err := to.Create(raft.SnapshotVersionMax, index, term, members, 1, transport)
	if err != nil {
		return err
	}
	if _, err := io.Copy(sink, from); err != nil {
		return err
	}
	return sink.Close()
}

// copySnapshotHalf begins a snapshot and does not finish it.
func copySnapshotHalf(to raft.SnapshotStore) error {
	_, transport := raft.NewInmemTransport("")
	sink, err := to.Create(raft.SnapshotVersionMax, 1, 1, raft.Configuration{}, 1, transport)
	if err != nil {
		return err
	}
	_, err = sink.Write([]byte("half"))
	return err
}
