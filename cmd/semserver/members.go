package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/server"
)

// errNoPeers refuses what a cluster of one cannot do.
var errNoPeers = errors.New("this node has no peers")

// members is the engine as SEM.NODE and CLUSTER show it, and as SEM.NODE takes care of it.
type members struct {
	node      *cluster.Node
	snapshots string // the directory of the snapshots
	clients   string // where clients reach this node
}

// List implements server.Members.
func (m members) List() ([]server.Member, error) {
	all, err := m.node.Members()
	if err != nil {
		return nil, err
	}
	listed := make([]server.Member, len(all))
	for i, one := range all {
		listed[i] = server.Member{
			ID: one.ID, Label: one.Label, Address: one.Address, Role: one.Role, Voter: one.Voter, Self: one.Self, Applied: -1,
		}
		if one.Self {
			listed[i].ClientAddress = m.clients
			listed[i].Applied = int64(m.figure("raft_applied_index"))
		}
	}
	return listed, nil
}

// Topology implements server.Members.
func (m members) Topology() server.Topology {
	all, err := m.List()
	if err != nil {
		return server.Topology{} // no leader is known
	}
	return server.Topology{Nodes: all, Term: m.figure("raft_term")}
}

// figure is a number of the engine's report.
func (m members) figure(name string) uint64 {
	for _, f := range m.node.Report() {
		if f.Name == name {
			n, _ := strconv.ParseUint(f.Value, 10, 64)
			return n
		}
	}
	return 0
}

// Add implements server.Care.
func (m members) Add(string) (string, error) { return "", errNoPeers }

// Remove implements server.Care.
func (m members) Remove(string) (bool, error) { return false, errNoPeers }

// Transfer implements server.Care.
func (m members) Transfer(string) error { return errNoPeers }

// Snapshot implements server.Care.
func (m members) Snapshot() (string, error) {
	if err := m.node.Snapshot(); err != nil {
		return "", err
	}
	newest, at := "", int64(0)
	entries, err := os.ReadDir(m.snapshots)
	if err != nil {
		return "", fmt.Errorf("find the snapshot: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(m.snapshots, e.Name(), "state.bin")
		if file, err := os.Stat(path); err == nil && file.ModTime().UnixNano() > at {
			newest, at = path, file.ModTime().UnixNano()
		}
	}
	if newest == "" {
		return "", fmt.Errorf("find the snapshot: there is none in %s", m.snapshots)
	}
	return filepath.Abs(newest)
}
