package main

import (
	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/semaphore"
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

// nobody stands for the nodes in Redis mode, where there are none: servers know nothing of each other but
// what is in Redis.
type nobody struct{}

var errNobody = semaphore.Errorf(semaphore.CodeInvalid,
	"this server runs in Redis mode: its semaphores are in a Redis, and it has no nodes to list, add, remove or hand over to, and no snapshots")

// List implements server.Members.
func (nobody) List() ([]server.Member, error) { return nil, errNobody }

// Topology implements server.Members.
func (nobody) Topology() server.Topology { return server.Topology{} }

// Add implements server.Care.
func (nobody) Add(string) (string, error) { return "", errNobody }

// Remove implements server.Care.
func (nobody) Remove(string) (bool, error) { return false, errNobody }

// Transfer implements server.Care.
func (nobody) Transfer(string) error { return errNobody }

// Snapshot implements server.Care.
func (nobody) Snapshot() (string, error) { return "", errNobody }
