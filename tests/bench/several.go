package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// several is a cluster on this machine.
type several struct {
	nodes []*node.Node
	peers []string
	store string
	data  []string
	b     *bench
}

func (b *bench) several(count int, store string) (*several, error) {
	c := &several{store: store, b: b, nodes: make([]*node.Node, count)}
	for range count {
		addr, err := node.FreeAddr()
		if err != nil {
			return nil, err
		}
		data, err := os.MkdirTemp(b.folder, "data-")
		if err != nil {
			return nil, fmt.Errorf("make a data directory: %w", err)
		}
		c.peers, c.data = append(c.peers, addr), append(c.data, data)
	}
	var starting sync.WaitGroup
	failures := make([]error, count)
	for i := range count {
		starting.Go(func() { failures[i] = c.start(i) })
	}
	starting.Wait()
	if err := errors.Join(failures...); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// start starts a node, which forms the cluster with the others, or comes back to it.
func (c *several) start(i int) error {
	n, err := node.Start(c.b.binary, "127.0.0.1:0", c.data[i], "--log-store", c.store, "--peer-listen", c.peers[i],
		"--bootstrap-expect", fmt.Sprint(len(c.nodes)), "--join", strings.Join(c.peers, ","))
	c.nodes[i] = n
	return err
}

func (c *several) stop() {
	for _, n := range c.nodes {
		if n != nil {
			n.Kill()
		}
	}
}

// leader returns which node leads.
func (c *several) leader() (int, error) {
	for deadline := time.Now().Add(resp.Timeout); time.Now().Before(deadline); {
		for i, n := range c.nodes {
			if leads(n.Addr) {
				return i, nil
			}
		}
	}
	return 0, errors.New("no node leads")
}

// leads asks a node whether it does; one that does not answer does not.
func leads(addr string) bool {
	conn, err := resp.Dial(addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	reply, err := conn.Do("INFO", "raft")
	return err == nil && strings.Contains(fmt.Sprint(reply), "raft_role:leader")
}

// place is where clients connect.
type place string

const (
	atLeader   place = "leader"
	atFollower place = "follower"
	atAll      place = "all nodes"
)

// at are the addresses of some of the nodes, as one side of a comparison.
type at struct {
	addrs string
	node  *node.Node
}

func (a at) address() string { return a.addrs }
func (a at) pid() int        { return a.node.Process.Pid }
func (a at) flags() []string { return nil }
func (a at) stop()           {}

// at returns the nodes of a place as they are now: another node may lead later.
func (c *several) at(p place) (side, error) {
	leader, err := c.leader()
	if err != nil {
		return nil, err
	}
	switch p {
	case atLeader:
		return at{c.nodes[leader].Addr, c.nodes[leader]}, nil
	case atFollower:
		follower := c.follower(leader)
		return at{follower.Addr, follower}, nil
	default:
		return at{strings.Join(c.addrs(), ","), c.nodes[leader]}, nil
	}
}

// follower is a node beside the leader.
func (c *several) follower(leader int) *node.Node { return c.nodes[(leader+1)%len(c.nodes)] }

func (c *several) addrs() []string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.Addr)
	}
	return all
}

// cpuTimes is the processor time that the leader has used so far, and the others on average.
func (c *several) cpuTimes(leader int) (leading, following time.Duration, err error) {
	for i, n := range c.nodes {
		used, err := cpuTime(n.Process.Pid)
		if err != nil {
			return 0, 0, err
		}
		if i == leader {
			leading = used
		} else {
			following += used / time.Duration(len(c.nodes)-1)
		}
	}
	return leading, following, nil
}
