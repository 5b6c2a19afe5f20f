package server

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/semserver/semserver/semaphore"
)

// trio is a cluster of three nodes, of which the second answers. Two have the same label.
type trio struct {
	mu    sync.Mutex // guards what follows
	nodes []Member
	term  uint64
	fault error         // of every call but Topology
	hold  chan struct{} // unless nil, calls of Care return when it is closed
}

func newTrio() *trio {
	return &trio{term: 7, nodes: []Member{
		{ID: "cccccccccccccccc", Label: "twin", Address: "10.0.0.3:7361", ClientAddress: "node3.example:7360", Role: RoleUnreachable, Applied: -1},
		{ID: "bbbbbbbbbbbbbbbb", Label: "b", Address: "10.0.0.2:7361", ClientAddress: "10.0.0.2:7360", Role: RoleFollower, Voter: true, Self: true, Applied: 40},
		{ID: "dddddddddddddddd", Label: "twin", Address: "[2001:db8::1]:7361", ClientAddress: "[2001:db8::1]:7360", Role: RoleLeader, Voter: true, Applied: 41},
	}}
}

// change changes the nodes.
func (t *trio) change(f func(*trio)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t)
}

func (t *trio) List() ([]Member, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.nodes), t.fault
}

func (t *trio) Topology() Topology {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Topology{slices.Clone(t.nodes), t.term}
}

// called waits as long as it is told to, and returns the fault.
func (t *trio) called() error {
	t.mu.Lock()
	hold, fault := t.hold, t.fault
	t.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return fault
}

func (t *trio) Add(address string) (string, error) {
	if err := t.called(); err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := fmt.Sprintf("%016d", len(t.nodes))
	t.nodes = append(t.nodes, Member{ID: id, Address: address, Role: RoleFollower, Applied: -1})
	return id, nil
}

func (t *trio) Remove(id string) (bool, error) {
	if err := t.called(); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.nodes)
	t.nodes = slices.DeleteFunc(t.nodes, func(m Member) bool { return m.ID == id })
	return len(t.nodes) < before, nil
}

func (t *trio) Transfer(id string) error {
	if err := t.called(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.IndexFunc(t.nodes, func(m Member) bool { return m.ID == id || id == "" && m.Role == RoleFollower })
	if at < 0 {
		return errors.New("no such member: " + id)
	}
	if t.nodes[at].Role == RoleUnreachable {
		return semaphore.Errorf(semaphore.CodeDown, "%s cannot be reached", id)
	}
	for i := range t.nodes {
		if t.nodes[i].Role == RoleLeader {
			t.nodes[i].Role = RoleFollower
		}
	}
	t.nodes[at].Role = RoleLeader
	t.term++
	return nil
}

func (t *trio) Snapshot() (string, error) { return "/data/snapshots/1/state.bin", t.called() }
