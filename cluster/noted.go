package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// evidence keeps beside the log what is needed to tell, at the next start, whether it is whole.
type evidence struct {
	dir    string
	papers *papers
	log    raft.LogStore
	noted  atomic.Bool // the directory says all that is to be said of the log as it goes on
}

// noted returns the log and the snapshots as Raft is to use them.
func (s *stores) noted(p *papers) (raft.LogStore, raft.SnapshotStore) {
	e := &evidence{dir: p.dir, papers: p, log: s.log}
	return notedLog{s.log, e}, notedSnapshots{s.snapshots, e}
}

// noteLog notes that the log goes on.
func (e *evidence) noteLog() error {
	if e.noted.Load() {
		return nil
	}
	err := e.papers.change(func(id *identity) error {
		id.Formed, id.Founder = true, nil
		return nil
	})
	if err == nil {
		err = removeDurably(filepath.Join(e.dir, installedFile))
	}
	e.noted.Store(err == nil)
	return err
}

// noteInstalled notes that the log will begin behind a snapshot.
func (e *evidence) noteInstalled() error {
	e.noted.Store(false)
	return writeDurably(filepath.Join(e.dir, installedFile), nil)
}

// notedLog is the log store with its evidence.
type notedLog struct {
	raft.LogStore
	evidence *evidence
}

// StoreLog implements raft.LogStore.
func (l notedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore. What could not be noted is noted with the next entries: these
// are stored, and must not be refused now.
func (l notedLog) StoreLogs(entries []*raft.Log) error {
	if err := l.LogStore.StoreLogs(entries); err != nil {
		return err
	}
	_ = l.evidence.noteLog()
	return nil
}

// DeleteRange implements raft.LogStore. Who deletes everything has a snapshot that stands for it.
func (l notedLog) DeleteRange(from, to uint64) error {
	first, err := l.FirstIndex()
	if err != nil {
		return err
	}
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if from <= first && to >= last {
		if err := l.evidence.noteInstalled(); err != nil {
			return fmt.Errorf("note that the log begins behind a snapshot: %w", err)
		}
	}
	return l.LogStore.DeleteRange(from, to)
}

// IsMonotonic implements raft.MonotonicLogStore.
func (l notedLog) IsMonotonic() bool {
	store, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && store.IsMonotonic()
}

// notedSnapshots is the snapshot store with the log's evidence.
type notedSnapshots struct {
	raft.SnapshotStore
	evidence *evidence
}

// Create implements raft.SnapshotStore.
func (s notedSnapshots) Create(version raft.SnapshotVersion, index, term uint64, members raft.Configuration, at uint64, transport raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, members, at, transport)
	if err != nil {
		return nil, err
	}
	last, err := s.evidence.log.LastIndex()
	if err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	if index <= last {
		return sink, nil
	}
	return notedSink{sink, s.evidence}, nil
}

// notedSink is a snapshot that is ahead of the log.
type notedSink struct {
	raft.SnapshotSink
	evidence *evidence
}

// Close implements raft.SnapshotSink.
func (s notedSink) Close() error {
	if err := s.evidence.noteInstalled(); err != nil {
		return errors.Join(fmt.Errorf("note that the log begins behind a snapshot: %w", err), s.Cancel())
	}
	return s.SnapshotSink.Close()
}
