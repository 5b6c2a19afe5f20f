package cluster

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/semserver/semserver/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testConfig(dir string) Config {
	cfg := DefaultConfig()
	cfg.DataDir = dir
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	return cfg
}

func openNode(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func closeNode(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// do runs one request and returns the value of its reply.
func do(t *testing.T, n *Node, r semaphore.Request) any {
	t.Helper()
	reply := n.Do([]semaphore.Request{r})[0]
	if reply.Err != nil {
		t.Fatalf("%#v: %v", r, reply.Err)
	}
	return reply.Value
}

func acquire(t *testing.T, n *Node, a semaphore.Acquire) *semaphore.Grant {
	t.Helper()
	g, ok := do(t, n, a).(*semaphore.Grant)
	if !ok {
		t.Fatalf("%#v: no grant", a)
	}
	return g
}

func TestRestartKeepsGrantsTokensAndLeases(t *testing.T) {
	for _, store := range []string{LogStoreWAL, LogStoreBoltDB} {
		t.Run(store, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.LogStore = store
			n := openNode(t, cfg)
			do(t, n, semaphore.Create{Key: "k", Capacity: 2})
			first := acquire(t, n, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour})
			if err := n.Snapshot(); err != nil {
				t.Fatal(err)
			}
			second := acquire(t, n, semaphore.Acquire{Key: "k", Holder: "b", Permits: 1, Lease: time.Hour})
			closeNode(t, n)

			cfg.Metrics = NewMetrics(prometheus.NewRegistry())
			n = openNode(t, cfg)
			defer closeNode(t, n)
			for _, want := range []*semaphore.Grant{first, second} {
				got := acquire(t, n, semaphore.Acquire{Key: "k", Holder: want.Holder, Permits: 1})
				if !got.Replayed || got.Token != want.Token || got.Slot() != want.Slot() {
					t.Errorf("after the restart %+v, want the grant %+v", got, want)
				}
				if got.Lease > time.Hour || got.Lease < time.Hour-time.Minute {
					t.Errorf("%v of the lease are left, want nearly an hour", got.Lease)
				}
			}
			if v := do(t, n, semaphore.Acquire{Key: "k", Holder: "c", Permits: 1}); v != nil {
				t.Errorf("a third grant of two permits: %v", v)
			}
			do(t, n, semaphore.Release{Key: "k", Holder: "a"})
			third := acquire(t, n, semaphore.Acquire{Key: "k", Holder: "c", Permits: 1})
			if third.Token <= second.Token {
				t.Errorf("token %d after %d", third.Token, second.Token)
			}
		})
	}
}

// A waiter of the process before keeps its place, and gets it back when it asks with the same holder.
func TestRestartKeepsTheLineForTheGrace(t *testing.T) {
	cfg := testConfig(t.TempDir())
	n := openNode(t, cfg)
	do(t, n, semaphore.Create{Key: "k", Capacity: 1})
	acquire(t, n, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour})
	line := func(holder string) *semaphore.Waiting {
		return do(t, n, semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Wait: time.Minute}).(*semaphore.Waiting)
	}
	line("first")
	line("second")
	closeNode(t, n)

	cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	n = openNode(t, cfg)
	defer closeNode(t, n)
	second, first := line("second"), line("first")
	do(t, n, semaphore.Release{Key: "k", Holder: "a"})
	if reply := <-first.Done; reply.Err != nil || reply.Value == nil {
		t.Errorf("the first in line got %v, want a grant", reply)
	}
	second.Leave()
	if reply := <-second.Done; reply.Err != nil || reply.Value != nil {
		t.Errorf("the second in line got %v, want no permit", reply)
	}
}

func TestDataDirectoryIsGuarded(t *testing.T) {
	dir := t.TempDir()
	n := openNode(t, testConfig(dir))
	refused := func(want string, cfg Config) {
		t.Helper()
		if other, err := Open(cfg); err == nil {
			closeNode(t, other)
			t.Errorf("opened, want an error that says %q", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want one that says %q", err, want)
		}
	}
	refused("in use by another process", testConfig(dir))
	closeNode(t, n)

	other := testConfig(dir)
	other.LogStore = LogStoreBoltDB
	refused("made with --log-store wal", other)

	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "precious.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("not ours", testConfig(foreign))

	if err := os.WriteFile(filepath.Join(dir, identityFile), []byte(`{"format": 2, "id": "x", "log_store": "wal"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("reads format 1", testConfig(dir))
}

func TestLoggerAndMetricsMayBeLeftOut(t *testing.T) {
	cfg := DefaultConfig()
	cfg.DataDir = t.TempDir()
	n := openNode(t, cfg)
	do(t, n, semaphore.Create{Key: "k", Capacity: 1})
	closeNode(t, n)
}

func TestUnfinishedSnapshotIsRemoved(t *testing.T) {
	cfg := testConfig(t.TempDir())
	closeNode(t, openNode(t, cfg))
	leftover := filepath.Join(cfg.DataDir, "snapshots", "2-1234-1796071914680.tmp")
	if err := os.MkdirAll(leftover, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	closeNode(t, openNode(t, cfg))
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat: %v, want that it does not exist", err)
	}
}

func TestClosedNodeAnswers(t *testing.T) {
	n := openNode(t, testConfig(t.TempDir()))
	do(t, n, semaphore.Create{Key: "k", Capacity: 0})
	w := do(t, n, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Wait: time.Minute}).(*semaphore.Waiting)
	closeNode(t, n)
	if reply := <-w.Done; !errors.Is(reply.Err, semaphore.ErrShutdown) {
		t.Errorf("the waiter got %v, want SHUTDOWN", reply)
	}
	if reply := n.Do([]semaphore.Request{semaphore.Inspect{Key: "k"}})[0]; !errors.Is(reply.Err, semaphore.ErrShutdown) {
		t.Errorf("got %v, want SHUTDOWN", reply)
	}
}

// failingStore is a disk that refuses to write while it is broken.
type failingStore struct {
	raft.LogStore
	broken  atomic.Bool
	refused atomic.Int64 // writes
}

func (s *failingStore) StoreLogs(logs []*raft.Log) error {
	if s.broken.Load() {
		s.refused.Add(1)
		return errors.New("no space left on device")
	}
	return s.LogStore.StoreLogs(logs)
}

func nodeOnFailingDisk(t *testing.T, cfg Config) (*Node, *failingStore) {
	t.Helper()
	id, stores, err := openDirectory(cfg)
	if err != nil {
		t.Fatal(err)
	}
	disk := &failingStore{LogStore: stores.log}
	stores.log = disk
	n := assemble(cfg, id, stores)
	if err := n.startRaft(); err != nil {
		t.Fatal(err)
	}
	n.start()
	return n, disk
}

// While the disk refuses to write, requests are held; when it recovers they are decided, once.
func TestRequestsSurviveADiskThatFailsForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t.TempDir())
		n, disk := nodeOnFailingDisk(t, cfg)
		defer closeNode(t, n)
		do(t, n, semaphore.Create{Key: "k", Capacity: 10})
		disk.broken.Store(true)
		reply := make(chan semaphore.Reply, 1)
		go func() {
			reply <- n.Do([]semaphore.Request{semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour}})[0]
		}()
		time.Sleep(cfg.Hold / 2)
		nothing(t, reply)
		if disk.refused.Load() < 2 {
			t.Error("the disk was not asked to write the request and, later, the next leadership")
		}
		disk.broken.Store(false)
		if r := <-reply; r.Err != nil {
			t.Fatalf("after the disk recovered: %v", r.Err)
		}
		if got := do(t, n, semaphore.Inspect{Key: "k"}).(*semaphore.Info).InUse; got != 1 {
			t.Errorf("%d permits in use, want 1", got)
		}
	})
}

// When the disk does not recover in time, the caller is told what is known.
func TestDiskThatStaysBrokenIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t.TempDir())
		n, disk := nodeOnFailingDisk(t, cfg)
		defer closeNode(t, n)
		do(t, n, semaphore.Create{Key: "k", Capacity: 10})
		disk.broken.Store(true)
		r := n.Do([]semaphore.Request{semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour}})[0]
		if !errors.Is(r.Err, semaphore.ErrDown) && !errors.Is(r.Err, semaphore.Uncertain("a")) {
			t.Fatalf("got %v, want CLUSTERDOWN or UNCERTAIN", r)
		}
		if n.Ready() == nil {
			t.Error("the node says it is ready")
		}
		disk.broken.Store(false)
		time.Sleep(cfg.WaiterGrace + time.Second)
		if got := do(t, n, semaphore.Inspect{Key: "k"}).(*semaphore.Info).InUse; got != 0 {
			t.Errorf("%d permits in use after the grace, want 0", got)
		}
	})
}
