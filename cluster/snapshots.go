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

// Snapshot writes the state to the data directory and cuts the log behind it. It returns when that
// is done.
func (n *Node) Snapshot() error {
	err := n.raft.Snapshot().Error()
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}
