package main

import (
	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/server"
)

// members is the engine as SEM.NODE and CLUSTER show it, and as SEM.NODE takes care of it.
type members struct{ *cluster.Node }

// List implements server.Members.
func (m members) List() ([]server.Member, error) {
	all, err := m.Members()
	if err != nil {
		return nil, err
	}
	listed := make([]server.Member, len(all))
	for i, one := range all {
		listed[i] = server.Member(one)
	}
	return listed, nil
}

// Topology implements server.Members.
func (m members) Topology() server.Topology {
	all, err := m.List()
	if err != nil {
		return server.Topology{} // no leader is known
	}
	return server.Topology{Nodes: all, Term: m.Term()}
}

// Snapshot implements server.Care.
func (m members) Snapshot() (string, error) { return m.SnapshotFile() }
