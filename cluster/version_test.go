package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

func TestLeaderWritesWhatEveryMemberReads(t *testing.T) {
	newest, oldest := fsm.NewestVersion, fsm.OldestVersion
	for name, c := range map[string]struct {
		members map[string]versions
		want    int
	}{
		"alone":                    {nil, newest},
		"with its like":            {map[string]versions{"a": readable(), "b": readable()}, newest},
		"with one that is newer":   {map[string]versions{"a": {oldest, newest + 1}}, newest},
		"with one that is too new": {map[string]versions{"a": readable(), "b": {newest + 1, newest + 2}}, 0},
		"with one that is too old": {map[string]versions{"a": readable(), "b": {oldest - 1, oldest - 1}}, 0},
	} {
		got, err := written(c.members)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s: version %d, %v, want %d", name, got, err, c.want)
		}
	}
}

// Where there is no version that all read, leadership goes to who can lead more, and then stays: it must
// not go round, least of all through a node that stops.
func TestLeadershipDoesNotGoRoundWithoutACommonVersion(t *testing.T) {
	next := versions{fsm.NewestVersion + 1, fsm.NewestVersion + 1}
	for name, c := range map[string]struct {
		b, c card
		want string
	}{
		"two that read what this one does not": {card{Reads: next}, card{Reads: next, Applied: 1}, "b"},
		"one that reads what no other does":    {card{Reads: next}, card{Reads: readable()}, ""},
		"each reads something else":            {card{Reads: next}, card{Reads: versions{next.Newest + 1, next.Newest + 1}}, ""},
		"one of the two stops":                 {card{Reads: next, Leaving: true}, card{Reads: next}, "c"},
		"both of them stop":                    {card{Reads: next, Leaving: true}, card{Reads: next, Leaving: true}, ""},
	} {
		m := &membership{papers: newPapers("", identity{ID: "a"}), roster: newRoster(), running: make(chan struct{})}
		c.b.Node, c.c.Node = "b", "c"
		for _, one := range []card{{Node: "a"}, c.b, c.c} {
			m.onDisk.Servers = append(m.onDisk.Servers, raft.Server{ID: raft.ServerID(one.Node)})
			m.roster.note(one, time.Now())
		}
		if got := m.betterLeader(time.Time{}); got != c.want {
			t.Errorf("%s: leadership goes to %q, want %q", name, got, c.want)
		}
	}
}

func TestNodeThatCannotReadTheLogIsNotAdded(t *testing.T) {
	f := formed(t, "a")
	newcomer := card{Node: "b", Reads: versions{fsm.NewestVersion + 1, fsm.NewestVersion + 1}}
	if err := f.nodes["a"].membership.understands(newcomer); err == nil || !strings.Contains(err.Error(), "reads versions") {
		t.Errorf("got %v, want an error that names the versions", err)
	}
}

// writeData makes the data directories in testdata anew:
//
//	go test ./cluster -run DataDirectoryOf -write-data
var writeData = flag.Bool("write-data", false, "make the data directories in testdata anew")

// A data directory of this version is opened by every later one: a member's on the one log store, that
// of a node without peers on the other. Each has a snapshot, a log behind it, a holder of either and
// somebody in line.
func TestDataDirectoryOfAnOlderVersionIsOpened(t *testing.T) {
	for _, store := range []string{LogStoreWAL, LogStoreBoltDB} {
		t.Run(store, func(t *testing.T) {
			cfg := testConfig(filepath.Join(t.TempDir(), "data"))
			cfg.LogStore = store
			if store == LogStoreWAL {
				cfg.PeerListen, cfg.BootstrapExpect = freeAddress(t), 1
				cfg.ElectionTimeout = 150 * time.Millisecond
			}
			archive := filepath.Join("testdata", "directory-v1-"+store+".tar.gz")
			if *writeData {
				writeDirectory(t, cfg, archive)
				return
			}
			unpack(t, archive, cfg.DataDir)
			n := openNode(t, cfg)
			defer closeNode(t, n)
			if line := do(t, n, semaphore.Inspect{Key: "k"}).(*semaphore.Info).Waiters; line != 1 {
				t.Errorf("%d stand in line, want 1", line)
			}
			var last int64
			for _, holder := range []string{"in the snapshot", "in the log"} {
				g := acquire(t, n, semaphore.Acquire{Key: "k", Holder: holder, Permits: 1})
				if !g.Replayed || g.Token <= last {
					t.Errorf("%s: %+v, want the grant that was there, with a token above %d", holder, g, last)
				}
				last = g.Token
			}
			if v := do(t, n, semaphore.Acquire{Key: "k", Holder: "another", Permits: 1}); v != nil {
				t.Errorf("a third of two permits was granted: %v", v)
			}
		})
	}
}

// writeDirectory makes a data directory and packs it.
func writeDirectory(t *testing.T, cfg Config, archive string) {
	n := openNode(t, cfg)
	do(t, n, semaphore.Create{Key: "k", Capacity: 2})
	acquire(t, n, semaphore.Acquire{Key: "k", Holder: "in the snapshot", Permits: 1, Lease: time.Hour})
	if err := n.Snapshot(); err != nil {
		t.Fatal(err)
	}
	acquire(t, n, semaphore.Acquire{Key: "k", Holder: "in the log", Permits: 1, Lease: time.Hour})
	do(t, n, semaphore.Acquire{Key: "k", Holder: "in line", Permits: 1, Wait: time.Hour})
	closeNode(t, n)
	// A spare segment holds nothing, and is made anew.
	if err := os.Remove(filepath.Join(cfg.DataDir, "wal", spareFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zip)
	steps(t,
		func() error { return w.AddFS(os.DirFS(cfg.DataDir)) }, w.Close, zip.Close,
		func() error { return os.MkdirAll(filepath.Dir(archive), 0o755) },
		func() error { return os.WriteFile(archive, packed.Bytes(), 0o644) },
	)
}

// unpack makes a directory of an archive. Log segments are nothing but room for the most part: blocks
// of zeros are left out.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(head.Name))
		if head.FileInfo().IsDir() {
			steps(t, func() error { return os.MkdirAll(path, 0o700) })
			continue
		}
		steps(t,
			func() error { return os.MkdirAll(filepath.Dir(path), 0o700) },
			func() error { return unpackFile(r, path, head.Size) },
		)
	}
}

func unpackFile(r io.Reader, path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < size; {
		n, err := io.ReadFull(r, block[:min(int64(len(block)), size-at)])
		if err != nil {
			return err
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := f.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return f.Truncate(size)
}
