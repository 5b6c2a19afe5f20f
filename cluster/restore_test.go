package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// saved is the file of a state with one holder, "h", and its token.
func saved(t *testing.T) (path string, token int64) {
	t.Helper()
	n := openNode(t, testConfig(t.TempDir()))
	defer closeNode(t, n)
	g := acquire(t, n, semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Lease: time.Hour, Create: true, Capacity: 1000})
	from, err := n.SnapshotFile()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, g.Token
}

// wantRestored checks that a node has the state that was saved.
func wantRestored(t *testing.T, cfg Config, token int64) {
	t.Helper()
	n := openNode(t, cfg)
	defer closeNode(t, n)
	if g := acquire(t, n, semaphore.Acquire{Key: "k", Holder: "h", Permits: 1}); g.Token != token {
		t.Errorf("token %d, want %d", g.Token, token)
	}
}

// The state of a file becomes a new cluster, which others join, and whose tokens go on growing.
func TestRestoredStateBeginsANewCluster(t *testing.T) {
	path, token := saved(t)
	f := newFleet(t, 1, 0)
	f.edit("a", func(c *Config) { c.Restore, c.Join = path, nil })
	f.start("a")
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want that of the saved grant, %d", got, token)
	}
	if got := f.take("x"); got <= token {
		t.Errorf("a new grant has token %d, want one above %d", got, token)
	}
	f.stop("a")
	f.edit("a", func(c *Config) { c.Restore = "" })
	f.prepare("b", 0)
	f.prepare("c", 0)
	f.start("a", "b", "c")
	f.wantShape("abc")
	if got := f.take("h"); got != token {
		t.Errorf("token %d after others have joined, want %d", got, token)
	}
}

func TestStateIsRestoredIntoANodeWithoutPeers(t *testing.T) {
	path, token := saved(t)
	cfg := testConfig(t.TempDir())
	cfg.Restore = path
	wantRestored(t, cfg, token)
}

// What is no whole state is refused before anything is written: the right file can be restored then.
func TestDamagedFileRestoresNothing(t *testing.T) {
	path, token := saved(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t.TempDir())
	for name, bad := range map[string][]byte{
		"empty": {}, "cut": text[:len(text)-1], "flipped": append([]byte{text[0] ^ 1}, text[1:]...),
	} {
		cfg.Restore = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(cfg.Restore, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, cfg, "restore "+cfg.Restore)
	}
	cfg.Restore = filepath.Join(t.TempDir(), "none")
	wantRefusal(t, cfg, "no such file")
	cfg.Restore = path
	wantRestored(t, cfg, token)
}

func TestStateIsNotRestoredOverAnother(t *testing.T) {
	path, _ := saved(t)
	cfg := usedDirectory(t, LogStoreWAL)
	cfg.Restore = path
	wantRefusal(t, cfg, "restore needs an empty data directory")
	cfg.Restore = ""
	n := openNode(t, cfg)
	defer closeNode(t, n)
	if g := acquire(t, n, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1}); !g.Replayed {
		t.Error("the state that was there is not there any more")
	}
}

// A restoring that was killed before its snapshot was whole is repeated.
func TestRestoringThatWasKilledIsRepeated(t *testing.T) {
	path, token := saved(t)
	cfg := testConfig(t.TempDir())
	id, s, err := openDirectory(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, snapshots := s.noted(newPapers(cfg.DataDir, id))
	steps(t,
		func() error { return s.stable.SetUint64([]byte(currentTerm), 1) },
		func() error { return copySnapshotHalf(snapshots) },
		s.close,
	)
	cfg.Restore = path
	wantRestored(t, cfg, token)
}

func TestSnapshotFileIsNamedOnAnyNode(t *testing.T) {
	f := formed(t, "a", "b", "c")
	f.take("h")
	name := f.letter(f.other().id.ID)
	f.wantApplied(name)
	path, err := f.nodes[name].SnapshotFile()
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.nodes[name].SnapshotFile()
	if err != nil {
		t.Errorf("with nothing new to write: %v", err)
	}
	for _, p := range []string{path, again} {
		if _, err := os.Stat(p); err != nil || !filepath.IsAbs(p) {
			t.Errorf("file %q: %v, want an absolute path to a file", p, err)
		}
	}
}
