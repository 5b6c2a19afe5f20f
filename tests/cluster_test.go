package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// several is a cluster of processes. Nodes count from 0, in the order in which they came.
type several struct {
	*testing.T
	members []*member
}

// member is a node over all its lives.
type member struct {
	addr, peer, data string
	flags            []string
	node             *node.Node // nil before the first life
}

// form starts a cluster of three for the length of the test, and returns once all know each other.
func form(t *testing.T, flags ...string) *several {
	t.Helper()
	return formOf(t, func(*member) []string { return flags })
}

// formOf is form with flags that depend on the node.
func formOf(t *testing.T, flags func(m *member) []string) *several {
	t.Helper()
	s := &several{T: t}
	t.TempDir() // the first of a test removes them all, and must be registered before close
	t.Cleanup(s.close)
	for range 3 {
		s.prepare()
	}
	for i, m := range s.members {
		m.flags = append(m.flags, "--bootstrap-expect", "3", "--join", s.peers())
		m.flags = append(m.flags, flags(m)...)
		s.launch(i)
	}
	for i := range s.members {
		s.ready(i)
	}
	s.know(3)
	return s
}

// prepare makes up one more node, which has never run, and returns its number. Each has an IP address of
// its own: whoever dials has another one, and takes no port away while a node is down.
func (s *several) prepare(flags ...string) int {
	s.Helper()
	i := len(s.members)
	m := &member{data: filepath.Join(s.TempDir(), "data"), flags: append([]string{"--node-id", fmt.Sprint("n", i)}, flags...)}
	for _, addr := range []*string{&m.addr, &m.peer} {
		var err error
		if *addr, err = node.FreeAddrOn(fmt.Sprintf("127.0.5.%d", i+1)); err != nil {
			s.Fatal(err)
		}
	}
	s.members = append(s.members, m)
	return i
}

// peers are the addresses to join.
func (s *several) peers() string {
	var all []string
	for _, m := range s.members {
		all = append(all, m.peer)
	}
	return strings.Join(all, ",")
}

// launch gives a node a life, which need not get as far as to serve clients.
func (s *several) launch(i int, flags ...string) {
	s.Helper()
	m := s.members[i]
	n, err := node.Launch(binary, m.addr, m.data, append(append([]string{"--peer-listen", m.peer}, m.flags...), flags...)...)
	if err != nil {
		s.Fatal(err)
	}
	m.node = n
}

func (s *several) ready(i int) {
	s.Helper()
	if err := s.members[i].node.Ready(); err != nil {
		s.Fatal(err)
	}
}

func (s *several) start(i int, flags ...string) {
	s.Helper()
	s.launch(i, flags...)
	s.ready(i)
}

func (s *several) kill(i int) {
	s.Helper()
	kill(s.T, s.members[i].node)
}

// wipe loses the disk of a node that does not run.
func (s *several) wipe(i int) {
	s.Helper()
	if err := os.RemoveAll(s.members[i].data); err != nil {
		s.Fatal(err)
	}
}

// close ends all nodes. What they complained of fails the test.
func (s *several) close() {
	for i, m := range s.members {
		if m.node == nil {
			continue
		}
		kill(s.T, m.node)
		if s.Failed() {
			s.Logf("--- log of node %d\n%s", i, m.node.Log())
		}
	}
}

func (s *several) dial(i int) *client {
	s.Helper()
	return dial(s.T, s.members[i].node)
}

// running are the nodes that run.
func (s *several) running() []int {
	var all []int
	for i, m := range s.members {
		if m.node == nil {
			continue
		}
		select {
		case <-m.node.Exited():
		default:
			all = append(all, i)
		}
	}
	return all
}

// ended waits until a node ends by itself, which must not be with status 0, and returns its log.
func (s *several) ended(i int) string {
	s.Helper()
	trial.Await(s.T, func() error {
		for _, running := range s.running() {
			if running == i {
				return fmt.Errorf("node %d runs", i)
			}
		}
		return nil
	})
	n := s.members[i].node
	if err := n.Stop(); err == nil {
		s.Errorf("node %d has ended with status 0, want another", i)
	}
	return n.Log()
}

// list is SEM.NODE LIST: what a node says of each.
func (s *several) list(i int) ([]map[string]string, error) {
	c, err := resp.Dial(s.members[i].addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	reply, err := c.Do("SEM.NODE", "LIST")
	if err != nil {
		return nil, err
	}
	nodes, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("SEM.NODE LIST at node %d: %v", i, reply)
	}
	var all []map[string]string
	for _, n := range nodes {
		flat, _ := n.([]any)
		fields := map[string]string{}
		for j := 0; j+1 < len(flat); j += 2 {
			fields[fmt.Sprint(flat[j])] = fmt.Sprint(flat[j+1])
		}
		all = append(all, fields)
	}
	return all, nil
}

// know waits until every node that runs knows so many members, all at work and with a vote, and one of
// them as the leader.
func (s *several) know(members int) {
	s.Helper()
	trial.Await(s.T, func() error {
		for _, i := range s.running() {
			all, err := s.list(i)
			if err != nil {
				return err
			}
			leaders := 0
			for _, m := range all {
				if m["role"] == "leader" {
					leaders++
				}
				if m["role"] == "unreachable" || m["voter"] != "1" || m["client_address"] == "" {
					leaders = -1
					break
				}
			}
			if len(all) != members || leaders != 1 {
				return fmt.Errorf("node %d knows %v, want %d members at work, and a leader", i, all, members)
			}
		}
		return nil
	})
}

// self is what a node says of itself.
func (s *several) self(i int) (map[string]string, error) {
	all, err := s.list(i)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m["self"] == "1" {
			return m, nil
		}
	}
	return nil, fmt.Errorf("node %d does not list itself: %v", i, all)
}

// leader waits until a node says that it leads.
func (s *several) leader() int {
	s.Helper()
	leader := -1
	trial.Await(s.T, func() error {
		for _, i := range s.running() {
			self, err := s.self(i)
			if err != nil {
				return err
			}
			if self["role"] == "leader" {
				leader = i
				return nil
			}
		}
		return fmt.Errorf("nobody leads")
	})
	return leader
}

// followers are the nodes that run and do not lead.
func (s *several) followers() []int {
	s.Helper()
	leader := s.leader()
	var all []int
	for _, i := range s.running() {
		if i != leader {
			all = append(all, i)
		}
	}
	return all
}
