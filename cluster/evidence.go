package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// installedFile is there while the log has legitimately nothing behind its latest snapshot: one that
// came from the leader, from a file that was restored, or from a recovery. It is removed once the log
// goes on. Without it, a log that ends before its snapshot has lost something.
const installedFile = "installed"

// currentTerm is Raft's key in the stable store.
const currentTerm = "CurrentTerm"

// lost says why a member may not go on with its directory. What it has forgotten may be a vote, or
// entries that the cluster counts on: under its old id it could do damage that the others cannot see.
func lost(dir, what string) error {
	return fmt.Errorf("part of the log in %s is gone: %s: acknowledged state is lost, and with it perhaps votes; empty the directory and start again: the node joins as a new one", dir, what)
}

// term returns the latest term that the node has seen.
func (s *stores) term() (uint64, error) {
	term, err := s.stable.GetUint64([]byte(currentTerm))
	if err != nil && err.Error() != "not found" { // raft-boltdb's error, which raft compares likewise
		return 0, fmt.Errorf("read current term: %w", err)
	}
	return term, nil
}

// mendBootstrap undoes a bootstrap that was cut short between its two writes. Nothing was said to
// anybody: who takes part in an election is in a later term.
func (s *stores) mendBootstrap() error {
	term, err := s.term()
	if err != nil || term != 1 {
		return err
	}
	last, err := s.lastIndex()
	if err != nil || last > 0 {
		return err
	}
	return s.stable.SetUint64([]byte(currentTerm), 0)
}

// begun reports whether there is anything of Raft's on disk: then the directory belongs to one cluster
// for ever.
func (s *stores) begun() (bool, error) {
	begun, err := raft.HasExistingState(s.log, s.stable, s.snapshots)
	if err != nil {
		return false, fmt.Errorf("look for existing state: %w", err)
	}
	return begun, nil
}

// checkWhole refuses a directory that has lost part of what it held, as far as that can be told.
func (s *stores) checkWhole(dir string, id identity, log *slog.Logger) error {
	end, snapshot, err := s.ends()
	if err != nil {
		return err
	}
	if id.Formed && max(end, snapshot) == 0 {
		if id.Cluster != "" {
			return lost(dir, "there is none")
		}
		return fmt.Errorf("the log of %s is gone: restore its files, or start on an empty directory", dir)
	}
	if err := s.checkTerm(dir); err != nil {
		return err
	}
	if end >= snapshot {
		return removeDurably(filepath.Join(dir, installedFile))
	}
	if _, err := os.Stat(filepath.Join(dir, installedFile)); err == nil {
		return s.dropLog(end)
	}
	members, err := s.configuration()
	if err != nil {
		return err
	}
	if others(members, id.ID) > 0 {
		return lost(dir, fmt.Sprintf("it ends at entry %d, before the snapshot at %d", end, snapshot))
	}
	log.Error("the log ends before its snapshot: what was acknowledged after the snapshot is lost", "data_dir", dir, "log_ends", end, "snapshot", snapshot)
	return nil
}

// dropLog removes what is left of a log that ends before an installed snapshot, as Raft would have done
// if the process had lived: the next entry would not follow on it.
func (s *stores) dropLog(end uint64) error {
	first, err := s.log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the start of the log: %w", err)
	}
	if end == 0 {
		return nil
	}
	if err := s.log.DeleteRange(first, end); err != nil {
		return fmt.Errorf("remove the log before the snapshot: %w", err)
	}
	return nil
}

// checkTerm refuses a stable store that is older than the log: its votes are forgotten.
func (s *stores) checkTerm(dir string) error {
	term, err := s.term()
	if err != nil {
		return err
	}
	last, err := s.log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	var entry raft.Log
	if last > 0 {
		if err := s.log.GetLog(last, &entry); err != nil {
			return fmt.Errorf("read the last entry: %w", err)
		}
	}
	snapshots, err := s.snapshots.List()
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	for _, meta := range snapshots {
		entry.Term = max(entry.Term, meta.Term)
	}
	if term < entry.Term {
		return fmt.Errorf("%s in %s is missing or older than the log (term %d, log %d): votes are forgotten; restore it, or empty the directory and let the node join as a new one", stableFile, dir, term, entry.Term)
	}
	return nil
}

// configuration returns the latest configuration on disk.
func (s *stores) configuration() (raft.Configuration, error) {
	var members raft.Configuration
	snapshots, err := s.snapshots.List()
	if err != nil {
		return members, fmt.Errorf("list snapshots: %w", err)
	}
	from := uint64(1)
	if len(snapshots) > 0 { // newest first
		members, from = snapshots[0].Configuration, snapshots[0].Index+1
	}
	first, err := s.log.FirstIndex()
	if err != nil {
		return members, fmt.Errorf("read the start of the log: %w", err)
	}
	last, err := s.log.LastIndex()
	if err != nil {
		return members, fmt.Errorf("read the end of the log: %w", err)
	}
	for i := max(first, from); i <= last && last > 0; i++ {
		var entry raft.Log
		if err := s.log.GetLog(i, &entry); err != nil {
			return members, fmt.Errorf("read entry %d: %w", i, err)
		}
		if entry.Type == raft.LogConfiguration {
			members = raft.DecodeConfiguration(entry.Data)
		}
	}
	return members, nil
}

// others counts the members besides this node.
func others(members raft.Configuration, id string) int {
	n := 0
	for _, s := range members.Servers {
		if string(s.ID) != id {
			n++
		}
	}
	return n
}

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

// removeDurably removes a file, if there is one.
func removeDurably(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}
