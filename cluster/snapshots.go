package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// snapshotLook is how often the node looks how much log has been written.
const snapshotLook = 500 * time.Millisecond

// snapshots takes a snapshot whenever enough log has been written: that bounds the disk it takes and
// the time that a restart takes. Raft's own rule counts entries, and ours differ in size by a thousand.
func (n *Node) snapshots(ctx context.Context) {
	ticker := time.NewTicker(snapshotLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if n.machine.logged.Load() < n.cfg.SnapshotBytes {
			continue
		}
		if err := n.Snapshot(); err != nil && ctx.Err() == nil {
			n.cfg.Logger.Error("snapshot failed; the log grows until one succeeds", "error", err)
		}
	}
}

// trail sets how much log stays behind the next snapshot: half of what has been written since the last
// one, so that a node which was away for a moment catches up by entries and needs no snapshot.
func (n *Node) trail() error {
	cfg := n.raft.ReloadableConfig()
	cfg.TrailingLogs = max(trailingEntries, uint64(n.machine.entries.Load())/2)
	if err := n.raft.ReloadConfig(cfg); err != nil {
		return fmt.Errorf("set how much log stays: %w", err)
	}
	return nil
}

// Snapshot writes the state to the data directory and cuts the log behind it. It returns when that
// is done.
func (n *Node) Snapshot() error {
	if err := n.trail(); err != nil {
		return err
	}
	err := n.raft.Snapshot().Error()
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}
