package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stoppedFile says where the log ended when the node last stopped in an orderly way. After a crash
// there is none: then the end of the log may have been torn, and what is missing was never
// acknowledged. But a log that is shorter than at an orderly stop has lost something.
const stoppedFile = "stopped"

// noteStop writes where the log ends.
func (s *stores) noteStop(dir string) error {
	last, err := s.lastIndex()
	if err != nil {
		return err
	}
	return writeDurably(filepath.Join(dir, stoppedFile), []byte(strconv.FormatUint(last, 10)+"\n"))
}

// checkStop compares the log with what the last orderly stop has noted.
func (s *stores) checkStop(dir string, id identity) error {
	path := filepath.Join(dir, stoppedFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read where the log ended: %w", err)
	}
	want, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return fmt.Errorf("read where the log ended: %s: %w", path, err)
	}
	last, err := s.lastIndex()
	if err != nil {
		return err
	}
	if last < want && id.Cluster != "" {
		return lost(dir, fmt.Sprintf("it ends at entry %d, but when the node stopped it ended at %d", last, want))
	}
	if last < want {
		return fmt.Errorf("the log in %s ends at entry %d, but when the node stopped it ended at %d: acknowledged state is lost; restore the files, or remove %s to go on without what is lost", dir, last, want, path)
	}
	return nil
}

// lastIndex returns where the log ends, or the latest snapshot where that is later.
func (s *stores) lastIndex() (uint64, error) {
	last, snapshot, err := s.ends()
	return max(last, snapshot), err
}

// ends returns where the log ends, and the latest snapshot.
func (s *stores) ends() (log, snapshot uint64, err error) {
	if log, err = s.log.LastIndex(); err != nil {
		return 0, 0, fmt.Errorf("read the end of the log: %w", err)
	}
	snapshots, err := s.snapshots.List()
	if err != nil {
		return 0, 0, fmt.Errorf("list snapshots: %w", err)
	}
	for _, meta := range snapshots {
		snapshot = max(snapshot, meta.Index)
	}
	return log, snapshot, nil
}
