package redisd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	masters = 3
	slots   = 16384
	busGap  = 10_000 // from the port for clients to that for the other nodes
)

// Cluster is a Redis Cluster of three masters, each with a replica.
type Cluster struct {
	Servers []*Server // three masters, then the replica of each, as long as there was no failover
}

// RunCluster starts a Redis Cluster for the length of the test and waits until all of it works.
func RunCluster(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	if err := c.start(t, settings); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Cluster) start(t testing.TB, settings []string) error {
	dir := t.TempDir()
	ours := append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
		"--repl-diskless-sync-delay", "0",
	}, settings...)
	for range 2 * masters {
		s, err := New(dir, ours...)
		if err != nil {
			return err
		}
		c.Servers = append(c.Servers, s)
		t.Cleanup(s.Kill)
		if err := s.Start(); err != nil {
			return err
		}
	}
	for i, s := range c.Servers[:masters] {
		if _, err := s.Do("CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1); err != nil {
			return fmt.Errorf("give slots: %w", err)
		}
	}
	return errors.Join(c.meet(), c.replicate(), until("the cluster works", c.works))
}

// meet makes the nodes one cluster.
func (c *Cluster) meet() error {
	host, port, _ := strings.Cut(c.Servers[0].Addr, ":")
	for i, s := range c.Servers {
		if _, err := s.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return fmt.Errorf("give an epoch: %w", err)
		}
	}
	for _, s := range c.Servers[1:] {
		if _, err := s.Do("CLUSTER", "MEET", host, port); err != nil {
			return fmt.Errorf("meet: %w", err)
		}
	}
	return until("the nodes know each other", func() bool {
		for _, s := range c.Servers {
			if !strings.Contains(s.clusterInfo(), fmt.Sprintf("cluster_known_nodes:%d\r", len(c.Servers))) {
				return false
			}
		}
		return true
	})
}

// replicate gives every master its replica.
func (c *Cluster) replicate() error {
	for i, s := range c.Servers[masters:] {
		id, err := c.Servers[i].id()
		if err != nil {
			return err
		}
		if _, err := s.Do("CLUSTER", "REPLICATE", id); err != nil {
			return fmt.Errorf("replicate: %w", err)
		}
	}
	return nil
}

// works says whether every node sees the whole cluster up, and every replica follows its master.
func (c *Cluster) works() bool {
	for i, s := range c.Servers {
		nodes, _ := s.Do("CLUSTER", "NODES")
		down := i >= masters && s.Field("master_link_status") != "up"
		if down || !strings.Contains(s.clusterInfo(), "cluster_state:ok") || strings.Count(fmt.Sprint(nodes), "slave") != masters {
			return false
		}
	}
	return true
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string { return addrs(c.Servers) }

// Owner is the master of a key's slot now, as a master that lives sees it.
func (c *Cluster) Owner(key string) (*Server, error) {
	slot, err := c.Slot(key)
	if err != nil {
		return nil, err
	}
	return c.ownerOf(slot)
}

func (c *Cluster) ownerOf(slot int64) (*Server, error) {
	for _, s := range c.Servers {
		if s.Field("role") != "master" {
			continue
		}
		reply, err := s.Do("CLUSTER", "SLOTS")
		ranges, ok := reply.([]any)
		if err != nil || !ok {
			continue
		}
		for _, r := range ranges {
			r := r.([]any)
			if node := r[2].([]any); slot >= r[0].(int64) && slot <= r[1].(int64) {
				return find(c.Servers, fmt.Sprintf("%v:%v", node[0], node[1]))
			}
		}
	}
	return nil, fmt.Errorf("no master says who has slot %d", slot)
}

// Slot is the slot of a key.
func (c *Cluster) Slot(key string) (int64, error) {
	for _, s := range c.Servers {
		if reply, err := s.Do("CLUSTER", "KEYSLOT", key); err == nil {
			return reply.(int64), nil
		}
	}
	return 0, errors.New("no node of the cluster answers")
}

// Replica is a live replica of a master.
func (c *Cluster) Replica(of *Server) (*Server, error) {
	_, port, _ := strings.Cut(of.Addr, ":")
	for _, s := range c.Servers {
		if s.Field("role") == "slave" && s.Field("master_port") == port {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s has no live replica", of.Addr)
}

// Promote puts the replica of a master in its place; with everything that it has, while both live.
func (c *Cluster) Promote(replica *Server) error {
	if _, err := replica.Do("CLUSTER", "FAILOVER"); err != nil {
		return fmt.Errorf("fail over: %w", err)
	}
	return until("another master", func() bool { return replica.Field("role") == "master" })
}

// Moved waits until another server than the old one has the slot of the key.
func (c *Cluster) Moved(key string, old *Server) error {
	return until("another master", func() bool {
		now, err := c.Owner(key)
		return err == nil && now != old && now.Pid() != 0 && now.Field("role") == "master" &&
			strings.Contains(now.clusterInfo(), "cluster_state:ok")
	})
}

func (s *Server) clusterInfo() string {
	text, _ := s.Do("CLUSTER", "INFO")
	return fmt.Sprint(text)
}

func (s *Server) id() (string, error) {
	reply, err := s.Do("CLUSTER", "MYID")
	if err != nil {
		return "", fmt.Errorf("ask a node for its id: %w", err)
	}
	return fmt.Sprint(reply), nil
}
