package main

import (
	"context"
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

// at are the addresses of some of the nodes, as one side of a comparison.
type at struct {
	addrs string
	node  *node.Node
}

func (a at) address() string { return a.addrs }
func (a at) pid() int        { return a.node.Process.Pid }
func (a at) flags() []string { return nil }
func (a at) stop()           {}

// places are where clients may connect: to the leader, to a follower, to all nodes.
func (c *several) places() (map[string]side, error) {
	leader, err := c.leader()
	if err != nil {
		return nil, err
	}
	follower := c.nodes[(leader+1)%len(c.nodes)]
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.Addr)
	}
	return map[string]side{
		"the leader": at{c.nodes[leader].Addr, c.nodes[leader]},
		"a follower": at{follower.Addr, follower},
		"all nodes":  at{strings.Join(all, ","), c.nodes[leader]},
	}, nil
}

// three measures three nodes: deep pipelines against a Redis that keeps nothing, pairs of acquire and
// release against locks of an etcd.
func three(ctx context.Context, b *bench) error {
	redis, err := b.startRedis("--appendonly", "no")
	if err != nil {
		return err
	}
	defer redis.stop()
	etcd, err := b.startEtcd(3)
	if err != nil {
		return err
	}
	defer etcd.stop()
	for i, store := range b.stores {
		c, err := b.several(3, store)
		if err != nil {
			return err
		}
		err = errors.Join(b.threeAgainst(ctx, c, redis, etcd, i == 0))
		c.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) threeAgainst(ctx context.Context, c *several, redis side, etcd *etcdCluster, first bool) error {
	places, err := c.places()
	if err != nil {
		return err
	}
	names := []string{"the leader"}
	if first {
		names = append(names, "a follower", "all nodes")
	}
	for _, name := range names {
		var ours, theirs, pairs, locks []float64
		for round := range b.rounds {
			deep, _, err := b.load(ctx, places[name], 16, b.requests[16])
			if err != nil {
				return err
			}
			script, _, err := b.load(ctx, redis, 16, b.requests[16])
			if err != nil {
				return err
			}
			pair, err := b.semctlBench(ctx, places[name], "--clients", fmt.Sprint(connections), "--requests", fmt.Sprint(b.requests[1]/4))
			if err != nil {
				return err
			}
			lock, err := etcd.load(ctx)
			if err != nil {
				return err
			}
			b.progress("three nodes, %s, %s, round %d: %.0f acquires/s (redis %.0f), %.0f pairs/s (etcd %.0f)",
				c.store, name, round+1, deep, script, pair.PerSecond, lock)
			ours, theirs = append(ours, deep), append(theirs, script)
			pairs, locks = append(pairs, pair.PerSecond), append(locks, lock)
		}
		b.versus(fmt.Sprintf("three nodes, %s, clients at %s: acquire + release pairs, P=1", c.store, name), "etcd", pairs, locks, 8, first && name == "the leader")
		b.versus(fmt.Sprintf("three nodes, %s, clients at %s: acquires, P=16", c.store, name), "redis memory", ours, theirs, 1.5, first && name == "the leader")
	}
	return nil
}

// versus adds a row that compares rates.
func (b *bench) versus(what, name string, ours, theirs []float64, target float64, counts bool) {
	ratio := medianRatio(ours, theirs)
	r := row{
		what: what, figure: fmt.Sprintf("%.0f /s", median(ours)), against: fmt.Sprintf("%s %.0f /s", name, median(theirs)),
		ratio: fmt.Sprintf("%.2f", ratio),
	}
	if counts {
		r.target, r.passed = fmt.Sprintf(">= %.1f", target), ratio >= target
	}
	b.rows = append(b.rows, r)
}
