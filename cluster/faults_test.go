package cluster

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semserver/semserver/semaphore"
)

var (
	faultSeed  = flag.Uint64("fault-seed", 0, "run the cluster under faults with this seed only")
	faultSeeds = flag.Uint64("fault-seeds", 6, "run the cluster under faults with so many seeds")
)

const (
	faultClients = 12
	faultTime    = 2 * time.Minute
	longestFault = 4 * time.Second
)

// capacities are the semaphores that the clients of a fault test want.
func capacities() map[string]int64 { return map[string]int64{"k1": 1, "k2": 2, "k3": 5} }

// TestPromisesHoldUnderFaults lets clients work on a cluster whose nodes are killed and cut off from each
// other, and then asks their history whether everything that was promised was kept.
func TestPromisesHoldUnderFaults(t *testing.T) {
	first, last := uint64(1), *faultSeeds
	if *faultSeed != 0 {
		first, last = *faultSeed, *faultSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { underFaults(t, seed) })
		})
	}
}

func underFaults(t *testing.T, seed uint64) {
	b := newBubble(t, seed, 3+2*int(seed%2))
	defer b.stop()
	h := &history{}
	b.settle()
	for key, n := range capacities() {
		do(t, b.nodes[0].node, semaphore.Create{Key: key, Capacity: n})
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range faultClients {
		c := &client{b: b, h: h, name: fmt.Sprintf("c%d", i), r: rand.New(rand.NewPCG(seed, uint64(100+i))), stop: stop}
		clients.Go(c.work)
	}
	b.harm(rand.New(rand.NewPCG(seed, 2)), faultTime)
	close(stop)
	clients.Wait()
	b.settle()
	time.Sleep(20 * time.Second) // all leases, waits and graces end
	for key, n := range capacities() {
		info := do(t, b.nodes[1].node, semaphore.Inspect{Key: key}).(*semaphore.Info)
		if info.Available != n || info.Waiters != 0 || info.Holders != 0 {
			h.fault("%s: when all is over, %d of %d permits are available, with %d waiters", key, info.Available, n, info.Waiters)
		}
	}
	for _, fault := range h.check(capacities()) {
		t.Error(fault)
	}
	t.Logf("%d grants, %d places in line; run again with -fault-seed=%d", len(h.grants), len(h.places), seed)
}

// settle waits until every node is up and ready.
func (b *bubble) settle() {
	for _, bn := range b.nodes {
		for bn.live() == nil || bn.live().Ready() != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// harm does harm, of one kind after the other, and mends it again.
func (b *bubble) harm(r *rand.Rand, for_ time.Duration) {
	for end := time.Now().Add(for_); time.Now().Before(end); {
		time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
		victim := b.nodes[r.IntN(len(b.nodes))]
		if l := b.leader(); l != nil && r.IntN(2) == 0 {
			victim = l
		}
		pause := time.Duration(r.Int64N(int64(longestFault)))
		switch r.IntN(7) {
		case 0:
			b.kill(victim)
			time.Sleep(pause)
			b.start(victim)
		case 1: // one node alone
			b.separate(func(i int) int { return truth(b.nodes[i] == victim) }, false)
			time.Sleep(pause)
		case 2: // it is heard, but hears nothing, or the other way round
			way := r.IntN(2)
			b.separate(func(i int) int { return way ^ truth(b.nodes[i] == victim) }, true)
			time.Sleep(pause)
		case 3:
			half := 1 + r.IntN(len(b.nodes)-1)
			b.separate(func(i int) int { return truth(i < half) }, false)
			time.Sleep(pause)
		case 4: // only streams break
			b.breakPipes(func(*bubblePipe) bool { return r.IntN(2) == 0 })
		case 5:
			if n := victim.live(); n != nil {
				n.raft.LeadershipTransfer() // refused where it does not lead
			}
		case 6: // a snapshot with nothing behind it: who is away needs it
			b.condense(victim)
		}
		b.separate(func(int) int { return 0 }, false)
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// condense makes a node keep little but a snapshot.
func (b *bubble) condense(bn *bubbleNode) {
	n := bn.live()
	cfg := n.raft.ReloadableConfig()
	cfg.TrailingLogs = 4
	if err := n.raft.ReloadConfig(cfg); err != nil {
		b.t.Error(err)
	}
	n.raft.Snapshot() // refused where there is nothing new
}

// client acquires, renews and releases, as well as it can.
type client struct {
	b        *bubble
	h        *history
	name     string
	r        *rand.Rand
	stop     chan struct{}
	attempts int
}

func (c *client) now() time.Duration { return time.Since(c.b.began) }

func (c *client) work() {
	for {
		select {
		case <-c.stop:
			return
		case <-time.After(time.Duration(c.r.Int64N(int64(300 * time.Millisecond)))):
			c.attempt()
		}
	}
}

// ask asks a node for one thing; ok: the answer came from a living node.
func (c *client) ask(n *Node, request semaphore.Request) (reply semaphore.Reply, ok bool) {
	asked := c.now()
	reply = n.Do([]semaphore.Request{request})[0]
	if took := c.now() - asked; took > n.cfg.Hold+time.Second {
		c.h.fault("%#v was answered after %v", request, took)
	}
	return reply, !errors.Is(reply.Err, semaphore.ErrShutdown)
}

func (c *client) node() *Node {
	for {
		if n := c.b.nodes[c.r.IntN(len(c.b.nodes))].live(); n != nil {
			return n
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *client) attempt() {
	c.attempts++
	a := semaphore.Acquire{
		Key: fmt.Sprintf("k%d", 1+c.r.IntN(3)), Holder: fmt.Sprintf("%s.%d", c.name, c.attempts), Permits: 1,
		Lease: time.Second + time.Duration(c.r.Int64N(int64(3*time.Second))),
	}
	if c.r.IntN(2) == 0 {
		a.Lease += longestFault + time.Second
	}
	if c.r.IntN(4) > 0 {
		a.Wait = time.Duration(c.r.Int64N(int64(4 * time.Second)))
	}
	first := c.now()
	for range 3 { // again with the same holder, perhaps at another node, when the outcome is not known
		o, again := c.acquire(a, first)
		if o != nil {
			c.use(a, o)
		}
		if !again {
			return
		}
	}
}

// acquire asks once; the holder was used first at a moment from which it may have had a place. again: it
// may be worth asking again.
func (c *client) acquire(a semaphore.Acquire, first time.Duration) (o *observed, again bool) {
	n, asked := c.node(), c.now()
	reply, _ := c.ask(n, a)
	line, waits := reply.Value.(*semaphore.Waiting)
	left := false
	p := &stand{key: a.Key, asked: first, stands: c.now()}
	if waits {
		if left = c.r.IntN(10) == 0; left {
			line.Leave()
		}
		reply = <-line.Done
		if late := c.now() - asked - a.Wait; late > time.Second {
			c.h.fault("%s: a wait of %v was answered %v late: %+v", a.Holder, a.Wait, late, reply)
		}
	}
	g, ok := reply.Value.(*semaphore.Grant)
	if !ok {
		return nil, reply.Err != nil && !errors.Is(reply.Err, semaphore.ErrSuperseded)
	}
	o = &observed{key: a.Key, holder: a.Holder, token: g.Token, slots: g.Slots, replayed: g.Replayed, asked: asked, told: c.now()}
	o.sure = o.told
	if !waits && !g.Replayed { // else its age is not known
		o.sure = asked + least(g.Lease)
	}
	// A grant whose lease is shorter than a fault may have come and gone at its turn, unseen.
	if waits && !left && !g.Replayed && a.Lease > longestFault {
		p.token = g.Token
		c.h.stood(p)
	}
	c.h.granted(o)
	return o, false
}

// least is how long a lease lasts at the least.
func least(lease time.Duration) time.Duration {
	return time.Duration(float64(lease) * (1 - rateTrust))
}

// use holds a grant for a while, renews it now and then, and gives it back or not.
func (c *client) use(a semaphore.Acquire, o *observed) {
	for range c.r.IntN(4) {
		time.Sleep(time.Duration(c.r.Int64N(int64(min(a.Lease, 4*time.Second)))) / 2)
		if !c.renew(a, o) {
			return
		}
	}
	if c.r.IntN(5) == 0 {
		return
	}
	c.h.mu.Lock()
	live := c.now() < o.sure
	o.sure = min(o.sure, c.now())
	c.h.mu.Unlock()
	asked := c.now()
	reply, ok := c.ask(c.node(), semaphore.Release{Key: a.Key, Holder: a.Holder, Token: o.token})
	if ok && live && reply.Value == semaphore.Number(0) && c.now() == asked {
		c.h.fault("%s: a live grant was not held any more when it was released at %v", a.Holder, asked)
	}
}

// renew reports whether the grant is still worth something.
func (c *client) renew(a semaphore.Acquire, o *observed) bool {
	asked := c.now()
	reply, _ := c.ask(c.node(), semaphore.Renew{Key: a.Key, Holder: a.Holder, Token: o.token})
	left, ok := reply.Value.(semaphore.Number)
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	switch {
	case !ok:
		return reply.Err != nil // it may have been renewed or not
	case left > 0:
		o.sure = max(o.sure, asked+least(time.Duration(left)*time.Millisecond))
	case c.now() < o.sure:
		c.h.faults = append(c.h.faults, fmt.Sprintf("%s: lost at %v, though its lease lasts until %v at least", a.Holder, c.now(), o.sure))
	}
	return left > 0
}
