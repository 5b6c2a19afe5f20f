package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/semaphore"
)

const (
	// soloTimeout is the election timeout of a cluster of one: there is nobody to wait for.
	soloTimeout = 50 * time.Millisecond
	// sweepEvery is how often the node looks for callers who have waited long enough.
	sweepEvery = 50 * time.Millisecond
	// commitTimeout is how soon an idle leader tells its followers what has been committed last.
	commitTimeout = 25 * time.Millisecond
	// maxAppendEntries is how many entries go to a follower at once.
	maxAppendEntries = 64
	// trailingEntries are kept behind a snapshot, for followers that are a little behind.
	trailingEntries = 512
	// drainTimeout is how long Close waits for what is in flight.
	drainTimeout = 2 * time.Second
)

// Node is one member of a cluster. It implements semaphore.Backend.
type Node struct {
	cfg        Config
	id         *papers
	stores     *stores
	network    *peer.Network // nil: a cluster of one that does not listen
	membership *membership   // likewise
	raft       *raft.Raft
	machine    *machine
	queue      *queue
	waits      *waits
	proposer   *proposer
	idle       sync.Pool // of *run

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

var _ semaphore.Backend = (*Node)(nil)

// Open starts a node on its data directory. The node is at once ready to be asked; it holds requests
// until it can decide them. The caller owns it and calls Close.
func Open(cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	cfg = cfg.complete()
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	var n *Node
	err := undamaged(cfg.DataDir, func() error {
		id, stores, err := openDirectory(cfg)
		if err != nil {
			return err
		}
		n = assemble(cfg, id, stores)
		if err := n.startRaft(); err != nil {
			return errors.Join(err, stores.close())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.start()
	return n, nil
}

// undamaged turns the panics of the stores, and faults in files that they map, into an error: what
// they cannot read is the operator's to mend.
func undamaged(dir string, open func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("files in %s are damaged or missing: %v", dir, p)
		}
	}()
	return open()
}

// openDirectory opens what a data directory holds. The stable store comes first: its lock keeps
// other processes out while the identity is read, or made.
func openDirectory(cfg Config) (identity, *stores, error) {
	if err := refuseForeign(cfg.DataDir); err != nil {
		return identity{}, nil, err
	}
	stores, err := openStable(cfg.DataDir)
	if err != nil {
		return identity{}, nil, err
	}
	id, err := stores.load(cfg)
	if err != nil {
		return identity{}, nil, errors.Join(err, stores.close())
	}
	return id, stores, nil
}

// assemble connects the parts of a node; nothing runs yet.
func assemble(cfg Config, id identity, stores *stores) *Node {
	n := &Node{cfg: cfg, id: newPapers(cfg.DataDir, id), stores: stores}
	n.idle.New = func() any { return emptyRun() }
	n.queue = newQueue(newIncarnation(), cfg.Limits)
	n.waits = newWaits(n.submit, cfg.Clock.Monotonic, cfg.WaiterGrace, cfg.Metrics)
	n.proposer = &proposer{
		clock: cfg.Clock, queue: n.queue, grace: cfg.WaiterGrace, enqueue: cfg.Hold,
		metrics: cfg.Metrics, log: cfg.Logger, wake: make(chan struct{}, 1),
	}
	n.machine = &machine{
		incarnation: n.queue.incarnation, clock: cfg.Clock, queue: n.queue, waits: n.waits, metrics: cfg.Metrics,
		opened: n.proposer.opened, deposed: n.proposer.deposed, progress: n.proposer.nudge, fatal: cfg.Fatal,
	}
	n.proposer.view = n.machine.published.Load
	n.machine.start()
	return n
}

func (n *Node) start() {
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	n.wg.Go(func() { n.proposer.run(ctx) })
	n.wg.Go(func() { n.sweep(ctx) })
	n.wg.Go(func() { n.snapshots(ctx) })
	if n.membership != nil {
		n.wg.Go(func() { n.membership.run(ctx) })
	}
	n.cfg.Metrics.watch(n)
}

// Do implements semaphore.Backend.
func (n *Node) Do(requests []semaphore.Request) []semaphore.Reply {
	r := n.idle.Get().(*run)
	r.begin(requests, n.cfg.Clock.Monotonic())
	if !n.queued(r) {
		return failures(requests, stopped)
	}
	<-r.settled
	if r.state.Load() == abandoned { // others still look after it
		if r.failure == unknown {
			n.cfg.Metrics.uncertain.Add(float64(len(requests)))
		}
		return failures(requests, r.failure)
	}
	replies := r.replies
	r.requests, r.replies = nil, nil
	n.idle.Put(r)
	return replies
}

// queued hands a run to the proposer; false: the node is closed.
func (n *Node) queued(r *run) bool {
	accepted, room := n.queue.add(r)
	if room {
		n.proposer.nudge()
	}
	return accepted
}

// GiveBack implements semaphore.Backend.
func (n *Node) GiveBack(key string, g *semaphore.Grant) { n.submit(giveBack(key, g)) }

// submit queues a request of the node's own; nobody waits for its reply.
func (n *Node) submit(request semaphore.Request) {
	r := newRun([]semaphore.Request{request}, n.cfg.Clock.Monotonic())
	r.state.Store(internal)
	n.queued(r)
}

// sweep answers callers who have waited long enough for a decision.
func (n *Node) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			n.queue.expire(n.cfg.Clock.Monotonic(), n.cfg.Hold)
		}
	}
}

// Ready returns nil when the node can decide requests, else why not.
func (n *Node) Ready() error {
	if err := n.membership.refusal(); err != nil {
		return err
	}
	if n.proposer.leading() == nil {
		return semaphore.ErrDown
	}
	return nil
}

// Close stops the node: what is in flight is given a moment to land, then callers are answered and
// everything is closed. Close returns when the last goroutine has ended.
func (n *Node) Close() error {
	n.patiently(n.queue.drained)
	n.Halt()
	n.cancel()
	n.wg.Wait()
	n.patiently(n.proposer.answered)
	err := errors.Join(n.raft.Shutdown().Error(), n.disconnect())
	n.patiently(n.proposer.answered)
	if err == nil {
		err = n.stores.noteStop(n.cfg.DataDir)
	}
	return errors.Join(err, n.stores.close())
}

// Halt answers everybody who waits for a decision as far as it is known, and refuses further requests.
// Close does so, too; Halt is for whoever cannot wait any longer for the engine to decide.
func (n *Node) Halt() {
	n.queue.close()
	n.waits.close()
}

// patiently waits for a condition, but not for ever.
func (n *Node) patiently(done func() bool) {
	for deadline := time.Now().Add(drainTimeout); !done() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}
