package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// The log stores to choose from.
const (
	LogStoreWAL    = "wal"    // hashicorp/raft-wal: one flush per entry
	LogStoreBoltDB = "boltdb" // hashicorp/raft-boltdb: two flushes per entry, in a B+tree file
)

const (
	stableFile    = "raft.db"
	snapshotsDir  = "snapshots" // as hashicorp/raft names it
	openTimeout   = time.Second // for the lock of a data directory that another process has open
	keptSnapshots = 2
	cachedEntries = 64
)

// stores are what a node keeps on disk.
type stores struct {
	bolt      *raftboltdb.BoltStore
	log       raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	closers   []io.Closer
}

// openStable opens the stable store, and with it locks the directory.
func openStable(dir string) (*stores, error) {
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: filepath.Join(dir, stableFile),
		BoltOptions: &bbolt.Options{
			Timeout:        openTimeout,
			NoFreelistSync: true, // rebuilt at start; syncing it costs every commit
			FreelistType:   bbolt.FreelistMapType,
		},
	})
	if errors.Is(err, bbolt.ErrTimeout) { //nolint:staticcheck // the value that bbolt.Open returns
		return nil, fmt.Errorf("data directory %s is in use by another process", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open stable store: %w", err)
	}
	return &stores{bolt: bolt, stable: bolt, closers: []io.Closer{bolt}}, nil
}

// open opens the log and the snapshots. On an error the caller still closes.
func (s *stores) open(dir, logStore string, log *slog.Logger) error {
	if err := s.openLog(dir, logStore, log); err != nil {
		return err
	}
	var err error
	s.snapshots, err = openSnapshots(dir, log)
	return err
}

// openSnapshots opens the snapshot store, without what a killed process left half written: Raft would
// only warn of it, again and again.
func openSnapshots(dir string, log *slog.Logger) (raft.SnapshotStore, error) {
	snapshots := filepath.Join(dir, snapshotsDir)
	entries, err := os.ReadDir(snapshots)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for unfinished snapshots: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			if err := os.RemoveAll(filepath.Join(snapshots, e.Name())); err != nil {
				return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
			}
		}
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, raftLogger(log))
	if err != nil {
		return nil, fmt.Errorf("open snapshot store: %w", err)
	}
	return pacedStore{store, snapshots}, nil
}

func (s *stores) openLog(dir, logStore string, log *slog.Logger) (err error) {
	if logStore == LogStoreBoltDB {
		s.log, err = raft.NewLogCache(cachedEntries, s.bolt)
		return err
	}
	wal, err := openWAL(filepath.Join(dir, "wal"), raftLogger(log))
	if err != nil {
		return err
	}
	s.closers = append(s.closers, wal)
	s.log, err = wal.cached()
	return err
}

// close closes in the opposite order of opening.
func (s *stores) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i].Close())
	}
	return errors.Join(errs...)
}
