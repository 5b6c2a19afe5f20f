package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

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
	if short, err := s.cutShort(); err != nil || !short {
		return err
	}
	return s.stable.SetUint64([]byte(currentTerm), 0)
}

// cutShort reports whether a bootstrap was killed between its two writes, or a restoring before its
// snapshot was there.
func (s *stores) cutShort() (bool, error) {
	term, err := s.term()
	if err != nil || term != 1 {
		return false, err
	}
	last, err := s.lastIndex()
	return last == 0, err
}

// begun reports whether there is anything of Raft's on disk: then the directory belongs to one cluster
// for ever.
func (s *stores) begun() (bool, error) {
	begun, err := raft.HasExistingState(s.log, s.stable, s.snapshots)
	if err != nil {
		return false, fmt.Errorf("look for existing state: %w", err)
	}
	short, err := s.cutShort()
	return begun && !short, err
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
	if end >= snapshot || installed(dir) {
		return nil
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

// installed reports whether the log may end before its snapshot.
func installed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, installedFile))
	return err == nil
}

// mendLog makes the log follow on the snapshot.
func (s *stores) mendLog(dir string) error {
	end, snapshot, err := s.ends()
	switch {
	case err != nil:
		return err
	case end >= snapshot:
		return removeDurably(filepath.Join(dir, installedFile))
	case installed(dir):
		return s.dropLog(end)
	}
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
