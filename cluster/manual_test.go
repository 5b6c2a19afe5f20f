package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/semaphore"
)

// manual is a node whose Raft is the test: an entry that the node proposes is committed at once, or,
// after hold, stays undecided until the test commits, refuses or loses it. All else is real. It lives
// in a synctest bubble, where waiting for a grace takes no time.
type manual struct {
	t    *testing.T
	cfg  Config
	node *Node
	stop func()

	leads atomic.Bool
	term  atomic.Uint64

	mu        sync.Mutex // also keeps entries apart while they are applied
	log       []*manualEntry
	undecided []*manualEntry
	proposed  []time.Time
	held      bool
}

type manualEntry struct {
	term   uint64
	data   []byte
	future *simFuture
}

// inBubble runs a test with a node that leads.
func inBubble(t *testing.T, test func(*testing.T, *manual)) {
	synctest.Test(t, func(t *testing.T) {
		c := &manual{t: t, cfg: testConfig(t.TempDir())}
		c.start()
		t.Cleanup(func() { c.stop() })
		c.elect()
		test(t, c)
	})
}

// start begins a life of the node's process, which has the log and nothing else.
func (c *manual) start() {
	n := assemble(c.cfg, identity{ID: "a"}, nil)
	n.proposer.raft = c
	for _, e := range c.log {
		n.machine.apply(e.data, e.term)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.wg.Go(func() { n.proposer.run(ctx) })
	n.wg.Go(func() { n.sweep(ctx) })
	c.node = n
	c.stop = func() {
		cancel()
		n.wg.Wait()
		n.Halt()
		for _, e := range c.pending() {
			c.fail(e, raft.ErrRaftShutdown)
		}
	}
}

// restart ends the node's process, without a word to the log, and begins another.
func (c *manual) restart() {
	c.leads.Store(false)
	c.stop()
	c.start()
}

// elect makes the node the leader of a new term.
func (c *manual) elect() {
	c.term.Add(1)
	c.leads.Store(true)
	time.Sleep(leaderPoll)
	synctest.Wait()
}

// The node's view of Raft.

func (c *manual) State() raft.RaftState {
	if c.leads.Load() {
		return raft.Leader
	}
	return raft.Follower
}

func (c *manual) CurrentTerm() uint64 { return c.term.Load() }

func (c *manual) Apply(data []byte, _ time.Duration) raft.ApplyFuture {
	e := &manualEntry{term: c.term.Load(), data: data, future: &simFuture{done: make(chan struct{})}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proposed = append(c.proposed, time.Now())
	c.undecided = append(c.undecided, e)
	if !c.held {
		c.land()
	}
	return e.future
}

// land commits what is undecided, in its order.
func (c *manual) land() {
	for _, e := range c.undecided {
		e.future.resolve(c.commit(e), nil)
	}
	c.undecided = nil
}

func (c *manual) commit(e *manualEntry) verdict {
	c.log = append(c.log, e)
	return c.node.machine.apply(e.data, e.term)
}

// hold leaves what is proposed from now on undecided.
func (c *manual) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
}

// release commits what is undecided and, from now on, everything at once.
func (c *manual) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	c.land()
}

// pending returns what is undecided.
func (c *manual) pending() []*manualEntry {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.undecided)
}

// next returns the one entry that is undecided.
func (c *manual) next() *manualEntry {
	c.t.Helper()
	entries := c.pending()
	if len(entries) != 1 {
		c.t.Fatalf("%d entries are undecided, want 1", len(entries))
	}
	return entries[0]
}

// succeed commits the one entry that is undecided.
func (c *manual) succeed() {
	c.t.Helper()
	c.next()
	c.flush()
}

// flush commits what is undecided, and nothing that follows.
func (c *manual) flush() {
	synctest.Wait()
	c.mu.Lock()
	c.land()
	c.mu.Unlock()
	synctest.Wait()
}

// void commits the one entry that is undecided under a later term than the node thought.
func (c *manual) void() {
	c.t.Helper()
	c.next().term = c.term.Add(1)
	c.flush()
}

// fail lets Raft tell the node an error instead of the outcome of an entry.
func (c *manual) fail(e *manualEntry, err error) {
	c.mu.Lock()
	c.undecided = slices.DeleteFunc(c.undecided, func(other *manualEntry) bool { return other == e })
	c.mu.Unlock()
	e.future.resolve(nil, err)
	synctest.Wait()
}

// lose ends the leadership under which an entry was proposed; Raft does not know what became of it.
func (c *manual) lose(e *manualEntry) {
	c.leads.Store(false)
	c.fail(e, raft.ErrLeadershipLost)
}

// arrive puts an entry that was lost into the log after all.
func (c *manual) arrive(e *manualEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commit(e)
}

// entries returns when entries were proposed, since the moment given.
func (c *manual) entries(since time.Time) []time.Time {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.proposed, func(at time.Time) bool { return at.After(since) })
	if i < 0 {
		return nil
	}
	return slices.Clone(c.proposed[i:])
}

// ask lets a client ask, and returns where its replies will arrive.
func (c *manual) ask(requests ...semaphore.Request) <-chan []semaphore.Reply {
	replies := make(chan []semaphore.Reply, 1)
	go func() { replies <- c.node.Do(requests) }()
	synctest.Wait()
	return replies
}

func (c *manual) do(request semaphore.Request) any {
	c.t.Helper()
	reply := (<-c.ask(request))[0]
	if reply.Err != nil {
		c.t.Fatalf("%#v: %v", request, reply.Err)
	}
	return reply.Value
}

// grant asks for a permit of "k" until it is told of a grant.
func (c *manual) grant(holder string) *semaphore.Grant {
	c.t.Helper()
	return c.granted(semaphore.Reply{Value: c.do(forHolder(holder, 0))})
}

// line asks for a permit of "k" and stands in line.
func (c *manual) line(holder string) *semaphore.Waiting {
	c.t.Helper()
	w, ok := c.do(forHolder(holder, time.Minute)).(*semaphore.Waiting)
	if !ok {
		c.t.Fatalf("%s does not stand in line", holder)
	}
	return w
}

func (c *manual) granted(reply semaphore.Reply) *semaphore.Grant {
	c.t.Helper()
	g, ok := reply.Value.(*semaphore.Grant)
	if !ok {
		c.t.Fatalf("got %v, want a grant", reply)
	}
	return g
}

// uncertain lets a client ask, tells it that the outcome is not known, and then lets the entry land.
func (c *manual) uncertain(requests ...semaphore.Request) {
	c.t.Helper()
	c.hold()
	for _, reply := range <-c.ask(requests...) {
		if !errors.Is(reply.Err, semaphore.Uncertain("")) {
			c.t.Fatalf("told %v, want UNCERTAIN", reply)
		}
	}
	c.release()
	synctest.Wait()
}

// want compares the figures of "k", of which every holder has one permit.
func (c *manual) want(when string, holders, waiters, orphans int64) {
	c.t.Helper()
	info := c.do(semaphore.Inspect{Key: "k"}).(*semaphore.Info)
	if info.Holders != holders || info.Waiters != waiters || info.Orphans != orphans {
		c.t.Fatalf("%s: %d holders, %d waiters, %d of them orphans; want %d, %d, %d",
			when, info.Holders, info.Waiters, info.Orphans, holders, waiters, orphans)
	}
}

// capacity makes "k".
func (c *manual) capacity(n int64) {
	c.t.Helper()
	c.do(semaphore.Create{Key: "k", Capacity: n})
}

// forHolder asks for a permit of "k" that lasts for longer than any test.
func forHolder(holder string, wait time.Duration) semaphore.Acquire {
	return semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Lease: 24 * time.Hour, Wait: wait}
}

// nothing fails the test if a reply has arrived.
func nothing[T any](t *testing.T, replies <-chan T) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-replies:
		t.Fatalf("got %v, want no answer so far", got)
	default:
	}
}
