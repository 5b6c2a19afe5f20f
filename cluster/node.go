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
	"github.com/semserver/semserver/fsm"
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
	maxAppendEntries = 32
	// trailingEntries are kept behind a snapshot at the least; see trail.
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
	guests     *guests
	forward    *forwarder    // nil: a cluster of one that does not listen
	begun      chan struct{} // closed when all parts are there
	idle       sync.Pool     // of *run

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

var _ semaphore.Backend = (*Node)(nil)

// Open starts a node on its data directory. The node is at once ready to be asked; it holds requests
// until it can decide them. The caller owns it and calls Close.
func Open(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	cfg = cfg.complete()
	if err := cfg.examine(); err != nil {
		return nil, err
	}
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
	n := &Node{cfg: cfg, id: newPapers(cfg.DataDir, id), stores: stores, begun: make(chan struct{})}
	n.idle.New = func() any { return emptyRun() }
	n.queue = newQueue(newIncarnation(), cfg.Limits)
	n.waits = newWaits(n.submit, n.again, func(r *run) { n.queued(r) }, cfg.Clock.Monotonic, cfg.WaiterGrace, cfg.Metrics)
	n.guests = newGuests(cfg.PeerListen == "")
	n.proposer = &proposer{
		clock: cfg.Clock, queue: n.queue, guests: n.guests, grace: cfg.WaiterGrace, enqueue: cfg.Hold,
		metrics: cfg.Metrics, log: cfg.Logger, wake: make(chan struct{}, 1),
	}
	n.machine = &machine{
		incarnation: n.queue.incarnation, clock: cfg.Clock, queue: n.queue, waits: n.waits, guests: n.guests,
		metrics: cfg.Metrics, opened: n.opened, deposed: n.deposed, progress: n.nudge, fatal: cfg.Fatal,
	}
	n.proposer.view = n.machine.published.Load
	n.machine.start()
	if cfg.PeerListen != "" {
		n.waits.part = n.part
		n.forward = &forwarder{
			self: id.ID, queue: n.queue, replied: n.machine.replied, ended: n.machine.ended,
			leader: n.leader, parting: n.waits.isParting, dial: n.dialLeader, clock: cfg.Clock, log: cfg.Logger,
			wake: make(chan struct{}, 1), released: n.proposer.nudge, patience: cfg.ElectionTimeout,
		}
	}
	return n
}

func (n *Node) start() {
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	n.wg.Go(func() { n.proposer.run(ctx) })
	n.wg.Go(func() { n.sweep(ctx) })
	n.wg.Go(func() { n.snapshots(ctx) })
	if n.network != nil {
		n.wg.Go(func() { n.membership.run(ctx) })
		n.wg.Go(func() { n.forward.run(ctx) })
		n.wg.Go(func() { n.lookAfterGuests(ctx) })
	}
	close(n.begun)
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
		n.nudge()
	}
	return accepted
}

// nudge makes whoever takes runs from the queue look again: the forwarder while another node leads.
func (n *Node) nudge() {
	if n.forward != nil && n.forward.attached.Load() {
		n.forward.nudge()
		return
	}
	n.proposer.nudge()
}

// opened starts this node's leadership.
func (n *Node) opened(l leadership, waiting []uint64) {
	n.proposer.opened(l, waiting)
	if n.waits.isParting() { // nobody else would say so
		n.guests.retire(n.queue.incarnation)
	}
}

// deposed ends leaderships of earlier terms than this one.
func (n *Node) deposed(term uint64) {
	n.proposer.deposed(term)
	n.guests.dismiss(term)
}

// GiveBack implements semaphore.Backend.
func (n *Node) GiveBack(key string, g *semaphore.Grant) { n.submit(giveBack(key, g)) }

// submit queues a request of the node's own; nobody waits for its reply.
func (n *Node) submit(request semaphore.Request) {
	r := newRun([]semaphore.Request{request}, n.cfg.Clock.Monotonic())
	r.state.Store(internal)
	n.queued(r)
}

// again makes a run of the request of a wait that is adrift.
func (n *Node) again(w *wait, q fsm.Rejoin) *run {
	r := newRun([]semaphore.Request{q}, n.cfg.Clock.Monotonic())
	r.again = w
	r.state.Store(internal)
	return r
}

// part asks for this node's waiters to be given up by it, so that their clients can take their places
// at another node.
func (n *Node) part() {
	if n.proposer.leading() != nil {
		n.guests.retire(n.queue.incarnation)
	}
	n.nudge()
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
	if n.proposer.leading() == nil && (n.forward == nil || !n.forward.attached.Load()) {
		return semaphore.ErrDown
	}
	if n.membership != nil && !n.membership.oriented.Load() {
		return errors.New("the node is asking after the others")
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

// removed answers everybody: a node that is no member any more learns of no further decision.
func (n *Node) removed(why error) {
	n.Halt()
	n.cfg.Removed(why)
}

// patiently waits for a condition, but not for ever.
func (n *Node) patiently(done func() bool) {
	for deadline := time.Now().Add(drainTimeout); !done() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}
