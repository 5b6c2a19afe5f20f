package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
)

// pacedBytes is how much of a snapshot is written before it is flushed. The log shares the disk: behind
// all of a snapshot at once, one of its flushes would take very long.
const pacedBytes = 1 << 20

// pacedStore is a store of snapshots in files that flushes them while they are written.
type pacedStore struct {
	raft.SnapshotStore
	dir string // of the snapshots
}

// Create implements raft.SnapshotStore.
func (s pacedStore) Create(v raft.SnapshotVersion, index, term uint64, members raft.Configuration, at uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(v, index, term, members, at, t)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, sink.ID()+".tmp", stateFile), os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the snapshot to flush it: %w", err), sink.Cancel())
	}
	return &pacedSink{SnapshotSink: sink, file: f}, nil
}

// pacedSink is a snapshot that is being written.
type pacedSink struct {
	raft.SnapshotSink
	file    *os.File
	written int // since the last flush
}

// Write implements raft.SnapshotSink.
func (s *pacedSink) Write(p []byte) (int, error) {
	n, err := s.SnapshotSink.Write(p)
	if s.written += n; err != nil || s.written < pacedBytes {
		return n, err
	}
	s.written = 0
	return n, s.file.Sync()
}

// Close implements raft.SnapshotSink.
func (s *pacedSink) Close() error {
	_ = s.file.Close() // it was there to flush; the sink flushes the rest itself
	return s.SnapshotSink.Close()
}

// Cancel implements raft.SnapshotSink.
func (s *pacedSink) Cancel() error {
	_ = s.file.Close() // nothing is kept; it may be closed already
	return s.SnapshotSink.Cancel()
}
