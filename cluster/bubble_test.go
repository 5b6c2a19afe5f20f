package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
)

// bubble is a cluster in a synctest bubble, where time passes only while nothing happens: minutes of
// faults take seconds. Raft and all of a node's parts are the real ones; disks and the network are in
// memory. A node can be killed and started again on its disk, and each link can be cut.
type bubble struct {
	t     *testing.T
	seed  uint64
	nodes []*bubbleNode
	began time.Time

	mu    sync.Mutex
	pipes map[*bubblePipe]struct{}
}

type bubbleNode struct {
	name      string
	rate      float64       // of its monotonic clock
	wall      time.Duration // how wrong its wall clock is
	store     *raft.InmemStore
	snapshots *raft.InmemSnapshotStore

	mu        sync.Mutex
	node      *Node // nil while it is down
	transport *raft.InmemTransport
	cancel    context.CancelFunc
	cut       map[string]bool // names of the nodes that it does not reach
}

type bubblePipe struct {
	from, to string
	ends     [2]net.Conn
}

func (b *bubble) name(i int) string { return fmt.Sprintf("n%d", i) }

func newBubble(t *testing.T, seed uint64, count int) *bubble {
	b := &bubble{t: t, seed: seed, began: time.Now(), pipes: make(map[*bubblePipe]struct{})}
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range count {
		b.nodes = append(b.nodes, &bubbleNode{
			name: b.name(i), rate: 1 + (r.Float64()-0.5)/100, wall: time.Duration(r.Int64N(int64(time.Hour))),
			store: raft.NewInmemStore(), snapshots: raft.NewInmemSnapshotStore(), cut: make(map[string]bool),
		})
	}
	for _, n := range b.nodes {
		b.start(n)
	}
	var members raft.Configuration
	for _, n := range b.nodes {
		members.Servers = append(members.Servers, raft.Server{ID: raft.ServerID(n.name), Address: raft.ServerAddress(n.name)})
	}
	if err := b.nodes[0].node.raft.BootstrapCluster(members).Error(); err != nil {
		t.Fatal(err)
	}
	return b
}

// start begins a life of a node.
func (b *bubble) start(bn *bubbleNode) {
	cfg := testConfig("")
	cfg.PeerListen = "in memory"
	cfg.ElectionTimeout = 300 * time.Millisecond
	cfg.WaiterGrace = longestFault + 5*time.Second // so that no place is lost to a fault
	cfg.Clock = Clock{
		Monotonic: func() time.Duration { return time.Duration(float64(time.Since(b.began)) * bn.rate) },
		Wall:      func() time.Time { return time.Now().Add(bn.wall) },
	}
	n := assemble(cfg, identity{ID: bn.name}, nil)
	_, transport := raft.NewInmemTransportWithTimeout(raft.ServerAddress(bn.name), time.Second)
	var err error
	n.raft, err = raft.NewRaft(n.raftConfig(), n.machine, bn.store, bn.store, bn.snapshots, transport)
	if err != nil {
		b.t.Fatal(err)
	}
	n.proposer.raft = n.raft
	n.forward.leader = n.raft.LeaderWithID
	n.forward.dial = func(ctx context.Context, address string) (net.Conn, peer.Greeting, error) {
		return b.dial(bn.name, address)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.wg.Go(func() { n.proposer.run(ctx) })
	n.wg.Go(func() { n.sweep(ctx) })
	n.wg.Go(func() { n.forward.run(ctx) })
	n.wg.Go(func() { n.lookAfterGuests(ctx) })
	close(n.begun)
	bn.mu.Lock()
	bn.node, bn.transport, bn.cancel = n, transport, cancel
	bn.mu.Unlock()
	b.wire()
}

// kill ends a node's process without a word. What it was asked is never answered.
func (b *bubble) kill(bn *bubbleNode) {
	bn.mu.Lock()
	n, cancel := bn.node, bn.cancel
	bn.node = nil
	bn.mu.Unlock()
	if n == nil {
		return
	}
	bn.transport.DisconnectAll()
	cancel()
	b.breakPipes(func(p *bubblePipe) bool { return p.from == bn.name || p.to == bn.name })
	if err := n.raft.Shutdown().Error(); err != nil {
		b.t.Error(err)
	}
	n.Halt()
	n.wg.Wait()
}

// live returns the node's present life, or nil.
func (bn *bubbleNode) live() *Node {
	bn.mu.Lock()
	defer bn.mu.Unlock()
	return bn.node
}

// reaches reports whether a link is whole.
func (b *bubble) reaches(from, to string) bool {
	for _, bn := range b.nodes {
		if bn.name == from {
			bn.mu.Lock()
			defer bn.mu.Unlock()
			return !bn.cut[to]
		}
	}
	return false
}

// wire connects the transports of nodes that reach each other, and those only.
func (b *bubble) wire() {
	for _, from := range b.nodes {
		for _, to := range b.nodes {
			if from == to || from.live() == nil || to.live() == nil {
				continue
			}
			if b.reaches(from.name, to.name) {
				from.transport.Connect(raft.ServerAddress(to.name), to.transport)
			} else {
				from.transport.Disconnect(raft.ServerAddress(to.name))
			}
		}
	}
}

// separate cuts the links between nodes that are in different groups; each node is in the group that
// the function says. One way: only from lower groups to higher ones.
func (b *bubble) separate(group func(i int) int, oneWay bool) {
	for i, from := range b.nodes {
		for j, to := range b.nodes {
			from.mu.Lock()
			from.cut[to.name] = group(i) != group(j) && (!oneWay || group(i) < group(j))
			from.mu.Unlock()
		}
	}
	b.wire()
	b.breakPipes(func(p *bubblePipe) bool { return !b.reaches(p.from, p.to) || !b.reaches(p.to, p.from) })
}

// dial opens a stream to the node of that name.
func (b *bubble) dial(from, to string) (net.Conn, peer.Greeting, error) {
	if !b.reaches(from, to) || !b.reaches(to, from) {
		return nil, peer.Greeting{}, net.ErrClosed
	}
	for _, bn := range b.nodes {
		n := bn.live()
		if bn.name != to || n == nil {
			continue
		}
		mine, its := net.Pipe()
		p := &bubblePipe{from: from, to: to, ends: [2]net.Conn{mine, its}}
		b.mu.Lock()
		b.pipes[p] = struct{}{}
		b.mu.Unlock()
		n.wg.Go(func() { n.host(its, peer.Greeting{Node: from}) })
		return mine, peer.Greeting{Node: to}, nil
	}
	return nil, peer.Greeting{}, net.ErrClosed
}

func (b *bubble) breakPipes(broken func(*bubblePipe) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range b.pipes {
		if broken(p) {
			p.ends[0].Close()
			p.ends[1].Close()
			delete(b.pipes, p)
		}
	}
}

// leader returns the node that leads, or nil.
func (b *bubble) leader() *bubbleNode {
	for _, bn := range b.nodes {
		if n := bn.live(); n != nil && n.proposer.leading() != nil {
			return bn
		}
	}
	return nil
}

func (b *bubble) stop() {
	for _, bn := range b.nodes {
		b.kill(bn)
	}
}
