package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/fsm"
)

// stateFile is the state itself within a snapshot, as hashicorp/raft names it.
const stateFile = "state.bin"

// SnapshotFile writes a snapshot of this node's state and returns the path of its file: what Restore
// takes. The node keeps its last two snapshots; who wants to keep the file copies it.
func (n *Node) SnapshotFile() (string, error) {
	if err := n.Snapshot(); err != nil {
		return "", err
	}
	all, err := n.stores.snapshots.List()
	if err != nil {
		return "", fmt.Errorf("list snapshots: %w", err)
	}
	if len(all) == 0 {
		return "", errors.New("there is nothing to write yet")
	}
	path, err := filepath.Abs(filepath.Join(n.cfg.DataDir, snapshotsDir, all[0].ID, stateFile))
	if err != nil {
		return "", fmt.Errorf("name the snapshot: %w", err)
	}
	return path, nil
}

// backup is a state that was read from a file.
type backup struct {
	text []byte
	size fsm.Stats
}

// readBackup reads a file of state and checks all of it.
func readBackup(path string) (*backup, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	state, err := fsm.Restore(bytes.NewReader(text))
	if err == nil {
		err = state.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", path, err)
	}
	return &backup{text, state.Stats()}, nil
}

// restore begins a new cluster, of this node alone, whose first snapshot is the state of a backup. The
// snapshot appears as a whole, and last: until then the directory counts as empty, and the restoring can,
// and must, be repeated.
func (n *Node) restore(transport raft.Transport) error {
	from := n.cfg.backup
	err := n.id.change(func(id *identity) error {
		id.Cluster, id.Founder, id.Restoring = "", nil, true
		if n.network != nil {
			id.Cluster = randomID()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := n.stores.stable.SetUint64([]byte(currentTerm), 1); err != nil {
		return fmt.Errorf("restore: write term: %w", err)
	}
	if err := n.firstSnapshot(from.text, transport); err != nil {
		return fmt.Errorf("restore: write snapshot: %w", err)
	}
	from.text = nil // it may be large, and the configuration lives on
	n.cfg.Logger.Info("state restored", "file", n.cfg.Restore, "semaphores", from.size.Semaphores, "holders", from.size.Holders)
	return n.id.change(func(id *identity) error {
		id.Restoring = false
		return nil
	})
}

// firstSnapshot writes a snapshot that stands for the whole log so far.
func (n *Node) firstSnapshot(text []byte, transport raft.Transport) error {
	_, snapshots := n.stores.noted(n.id)
	sink, err := snapshots.Create(raft.SnapshotVersionMax, 1, 1, n.alone(transport), 1, transport)
	if err != nil {
		return err
	}
	if _, err := sink.Write(text); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// alone is the configuration of a cluster of this node.
func (n *Node) alone(transport raft.Transport) raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(n.id.ID), Address: transport.LocalAddr()}}}
}
