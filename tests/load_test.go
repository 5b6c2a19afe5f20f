package tests

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	loadCapacity = 5
	loadClients  = 40
	loadTime     = 4 * time.Second
)

// TestRandomClientsNeverExceedCapacity lets clients acquire, release, renew, wait and hang up at
// random, and counts who holds what from what they were told, not from the server's own figures.
func TestRandomClientsNeverExceedCapacity(t *testing.T) {
	t.Parallel()
	n := start(t)
	look := dial(t, n)
	look.want("OK", "SEM.CREATE", "pool", loadCapacity)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	watch := &observer{occupants: map[int64]*occupant{}}
	var all sync.WaitGroup
	end := time.Now().Add(loadTime)
	for i := range loadClients {
		c := &guest{addr: n.Addr, name: fmt.Sprint("c", i, "-"), random: rand.New(rand.NewPCG(seed, uint64(i))), watch: watch}
		all.Go(func() {
			for time.Now().Before(end) {
				if err := c.visit(); err != nil {
					t.Error(err)
					return
				}
			}
			c.hangUp()
		})
	}
	all.Wait()
	for _, fault := range watch.faults {
		t.Error(fault)
	}
	if watch.grants < loadClients {
		t.Errorf("grants: got %d, want a load worth the name", watch.grants)
	}
	trial.Await(t, func() error { return look.books("pool", 0, loadCapacity, 0) })
	t.Logf("%d grants, %d of them dropped by hanging up", watch.grants, watch.dropped)
}

// occupant is a grant as its client knows it.
type occupant struct {
	holder string
	until  time.Time // its lease cannot end before this
}

// observer knows which slots are taken.
type observer struct {
	mu              sync.Mutex
	occupants       map[int64]*occupant
	grants, dropped int
	faults          []string
}

// enter notes a grant that was just received.
func (o *observer) enter(g *occupant, slots []int64) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grants++
	for _, slot := range slots {
		if before := o.occupants[slot]; before != nil && now.Before(before.until) {
			o.faults = append(o.faults, fmt.Sprintf("slot %d went to %s %v before the lease of %s can have ended", slot, g.holder, before.until.Sub(now), before.holder))
		}
		if slot >= loadCapacity {
			o.faults = append(o.faults, fmt.Sprintf("slot %d of %d went to %s", slot, loadCapacity, g.holder))
		}
		o.occupants[slot] = g
	}
}

// renewed notes that a lease lasts longer.
func (o *observer) renewed(g *occupant, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g.until = until
}

// exit notes that a grant is about to be given up.
func (o *observer) exit(g *occupant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g.until = time.Time{}
}

// guest is one client.
type guest struct {
	addr, name string
	next       int
	conn       *resp.Conn
	random     *rand.Rand
	watch      *observer
}

func (c *guest) hangUp() {
	if c.conn == nil {
		return
	}
	// Either way it is gone, and an error says no more than that.
	if c.random.IntN(2) == 0 {
		_ = c.conn.Reset()
	} else {
		_ = c.conn.Close()
	}
	c.conn = nil
}

// visit is one attempt to get in, and whatever follows.
func (c *guest) visit() error {
	if c.conn == nil {
		conn, err := resp.Dial(c.addr)
		if err != nil {
			return err
		}
		c.conn = conn
	}
	g := &occupant{holder: fmt.Sprint(c.name, c.next)}
	c.next++
	lease := time.Duration(100+c.random.IntN(400)) * time.Millisecond
	wait := c.random.IntN(150)
	g.until = time.Now().Add(lease)
	if err := c.conn.Send("SEM.ACQUIRE", "pool", "HOLDER", g.holder, "PERMITS", 1+c.random.IntN(2),
		"LEASE", lease.Milliseconds(), "WAIT", wait, "SLOTS"); err != nil {
		return err
	}
	if c.random.IntN(8) == 0 { // away before the answer: granted or not, nobody knows
		<-time.After(time.Duration(c.random.IntN(20)) * time.Millisecond)
		c.hangUp()
		return nil
	}
	reply, err := c.conn.Receive(patience)
	if err != nil {
		return fmt.Errorf("acquire with WAIT %d: %w", wait, err)
	}
	if reply == nil {
		return nil
	}
	slots, err := slotsOf(reply)
	if err != nil {
		return err
	}
	c.watch.enter(g, slots)
	return c.stay(g, lease)
}

// stay holds a grant for a while and gives it up in one way or another.
func (c *guest) stay(g *occupant, lease time.Duration) error {
	<-time.After(time.Duration(c.random.IntN(4)) * time.Millisecond)
	switch c.random.IntN(10) {
	case 0: // the lease runs on without anybody
		c.watch.mu.Lock()
		c.watch.dropped++
		c.watch.mu.Unlock()
		c.hangUp()
		return nil
	case 1:
		since := time.Now()
		reply, err := c.conn.Do("SEM.RENEW", "pool", g.holder, "LEASE", lease.Milliseconds())
		if err != nil {
			return err
		}
		if reply == lease.Milliseconds() {
			c.watch.renewed(g, since.Add(lease))
		}
	}
	until := g.until
	c.watch.exit(g)
	reply, err := c.conn.Do("SEM.RELEASE", "pool", g.holder)
	if err != nil {
		return err
	}
	if reply != int64(1) && time.Now().Before(until) {
		return fmt.Errorf("release of %s within its lease: got %v, want 1", g.holder, reply)
	}
	return nil
}

// slotsOf lists the slots of a grant that was asked for with SLOTS.
func slotsOf(reply any) ([]int64, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 6 {
		return nil, fmt.Errorf("got %v, want a grant with its slots", reply)
	}
	var slots []int64
	for _, run := range parts[5].([]any) {
		ends := run.([]any)
		for slot := ends[0].(int64); slot <= ends[1].(int64); slot++ {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}
