package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

const (
	segmentBytes = 64 << 20
	// segmentSlack is allocated behind a segment for the entries that carry it over its size, and
	// for the index that seals it.
	segmentSlack = 8 << 20
	spareFile    = "spare"
)

// errNoRoom says that entries were refused before anything of them was written.
var errNoRoom = errors.New("no room for the next log segment")

// walLog is hashicorp/raft-wal, made to survive a full disk. By itself it does not: when the next
// segment cannot be made, or the index of a full one not be written, it takes no entry any more, even
// when there is room again. So every segment is allocated with all that it will ever need, the next
// one is allocated before the present one takes another entry, and entries for which that fails are
// refused before the WAL has seen them.
type walLog struct {
	*raftwal.WAL
	files *walFiles
	index io.Closer
}

func openWAL(dir string, log hclog.Logger) (*walLog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make log directory: %w", err)
	}
	files := &walFiles{FS: walfs.New(), dir: dir}
	index := &metadb.BoltMetaDB{} // the WAL would not close its own
	wal, err := raftwal.Open(dir,
		raftwal.WithSegmentSize(segmentBytes),
		raftwal.WithSegmentFiler(segment.NewFiler(dir, files)),
		raftwal.WithMetaStore(index),
		raftwal.WithLogger(log))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log store: %w", err), index.Close())
	}
	return &walLog{WAL: wal, files: files, index: index}, nil
}

// cached returns the log store for Raft, with the latest entries kept in memory.
func (l *walLog) cached() (raft.LogStore, error) {
	cache, err := raft.NewLogCache(cachedEntries, l.WAL)
	return roomyLog{cache, l.files}, err
}

// roomyLog refuses entries while there is no spare segment.
type roomyLog struct {
	*raft.LogCache
	files *walFiles
}

// StoreLog implements raft.LogStore.
func (l roomyLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore. One call never fills a segment, so one spare is enough.
func (l roomyLog) StoreLogs(entries []*raft.Log) error {
	if err := l.files.provide(); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return l.LogCache.StoreLogs(entries)
}

// Close implements io.Closer.
func (l *walLog) Close() error { return errors.Join(l.WAL.Close(), l.index.Close()) }

// walFiles is the WAL's file system. A new segment is a spare file that was allocated before.
type walFiles struct {
	*walfs.FS
	dir string

	mu    sync.Mutex
	spare bool
}

// provide makes sure that there is a spare file.
func (f *walFiles) provide() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.provideLocked(segmentBytes)
}

func (f *walFiles) provideLocked(size uint64) error {
	if f.spare {
		return nil
	}
	path := filepath.Join(f.dir, spareFile)
	// What a former process left may be allocated in part only.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.FS.Create(f.dir, spareFile, size+segmentSlack)
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	if err := file.Close(); err != nil {
		return err
	}
	f.spare = true
	return nil
}

// Create implements types.VFS.
func (f *walFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.provideLocked(size); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("segment %s exists: %w", path, errors.Join(err, fs.ErrExist))
	}
	if err := os.Rename(filepath.Join(f.dir, spareFile), path); err != nil {
		return nil, err
	}
	f.spare = false
	if err := syncDirectory(dir); err != nil {
		return nil, err
	}
	return f.FS.OpenWriter(dir, name)
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
