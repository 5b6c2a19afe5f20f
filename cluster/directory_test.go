package cluster

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/semaphore"
)

// usedDirectory is a data directory with a grant in its log, whose node has stopped.
func usedDirectory(t *testing.T, store string) Config {
	t.Helper()
	cfg := testConfig(t.TempDir())
	cfg.LogStore = store
	n := openNode(t, cfg)
	acquire(t, n, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour, Create: true, Capacity: 1})
	closeNode(t, n)
	cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	return cfg
}

func wantRefusal(t *testing.T, cfg Config, want string) {
	t.Helper()
	n, err := Open(cfg)
	if err == nil {
		closeNode(t, n)
		t.Fatalf("opened, want an error that says %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q, want one that says %q", err, want)
	}
}

// Nothing that was acknowledged is lost in silence because files are missing.
func TestMissingLogIsRefused(t *testing.T) {
	t.Run("boltdb", func(t *testing.T) {
		cfg := usedDirectory(t, LogStoreBoltDB)
		if err := os.Remove(filepath.Join(cfg.DataDir, stableFile)); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, cfg, "acknowledged state is lost")
		// Also when the note of the last stop is gone, too.
		if err := os.Remove(filepath.Join(cfg.DataDir, stoppedFile)); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, cfg, "is gone")
	})
	t.Run("wal", func(t *testing.T) {
		cfg := usedDirectory(t, LogStoreWAL)
		segments, err := filepath.Glob(filepath.Join(cfg.DataDir, "wal", "*.wal"))
		if err != nil || len(segments) == 0 {
			t.Fatalf("segments: %v, %v", segments, err)
		}
		for _, path := range segments {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}
		wantRefusal(t, cfg, "acknowledged state is lost")
	})
}

// After a crash it cannot be told how much of the log is missing behind a snapshot, but that some is.
func TestLogThatEndsBeforeItsSnapshotIsToldOf(t *testing.T) {
	cfg := testConfig(t.TempDir())
	n := openNode(t, cfg)
	do(t, n, semaphore.Create{Key: "k", Capacity: 1})
	if err := n.Snapshot(); err != nil {
		t.Fatal(err)
	}
	closeNode(t, n)
	// As a crash leaves it, with the log gone.
	if err := os.Remove(filepath.Join(cfg.DataDir, stoppedFile)); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(cfg.DataDir, "wal", "0*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments: %v, %v", segments, err)
	}
	for _, path := range segments {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
	cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	closeNode(t, openNode(t, cfg))
	if want := "the log ends before its snapshot"; !strings.Contains(said.String(), want) {
		t.Errorf("logged %q, want a line that says %q", said.String(), want)
	}
}

func TestDirectoryOfAnotherNodeIsRefused(t *testing.T) {
	cfg := usedDirectory(t, LogStoreWAL)
	path := filepath.Join(cfg.DataDir, identityFile)
	id, err := loadIdentity(cfg)
	if err != nil {
		t.Fatal(err)
	}
	id.ID = randomID()
	if err := id.save(path); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, cfg, "a cluster without this node")
}

func TestDamagedFilesAreReported(t *testing.T) {
	cfg := usedDirectory(t, LogStoreWAL)
	if err := os.Truncate(filepath.Join(cfg.DataDir, "wal", "wal-meta.db"), 0); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, cfg, "damaged or missing")
}

func TestStartsAtOnceOnOneDirectoryAgree(t *testing.T) {
	cfg := testConfig(filepath.Join(t.TempDir(), "new"))
	nodes := make([]*Node, 8)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			own := cfg
			own.Metrics = NewMetrics(prometheus.NewRegistry())
			nodes[i], _ = Open(own)
		})
	}
	wg.Wait()
	opened := 0
	for _, n := range nodes {
		if n == nil {
			continue
		}
		opened++
		do(t, n, semaphore.Create{Key: "k", Capacity: 1, IfAbsent: true})
		closeNode(t, n)
	}
	if opened == 0 {
		t.Error("nobody could open the directory")
	}
	n := openNode(t, cfg)
	defer closeNode(t, n)
	do(t, n, semaphore.Inspect{Key: "k"})
}

// A disk without room for the next segment refuses entries before the log has seen them.
func TestLogTakesNothingWithoutRoomForTheNextSegment(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Hold = 300 * time.Millisecond
	n := openNode(t, cfg)
	defer closeNode(t, n)
	do(t, n, semaphore.Create{Key: "k", Capacity: 1})
	files := n.stores.log.(roomyLog).files
	files.mu.Lock()
	files.spare = false
	files.mu.Unlock()
	// A directory that is not empty stands where the spare file would be made.
	spare := filepath.Join(cfg.DataDir, "wal", spareFile)
	if err := os.Remove(spare); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(spare, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := n.Do([]semaphore.Request{semaphore.Delete{Key: "k"}})[0]; !errors.Is(r.Err, semaphore.ErrDown) {
		t.Errorf("without room: %v, want CLUSTERDOWN, because certainly nothing was done", r)
	}
	if err := os.RemoveAll(spare); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		r := n.Do([]semaphore.Request{semaphore.Inspect{Key: "k"}})[0]
		if r.Err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("long after there was room again: %v", r.Err)
		}
	}
}
