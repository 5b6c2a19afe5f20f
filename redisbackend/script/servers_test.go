package script

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// front is a server with a line, as the scripts see one.
type front struct {
	rig  *rig
	line []Candidate
}

// crowd is several servers on one semaphore.
type crowd struct {
	*rapid.T
	key      string
	capacity int64
	fronts   []*front
	held     map[string]int64 // permits
	arrivals int64
	token    int64
}

// call makes a call of a front with the head of its line, and checks whatever is served.
func (c *crowd) call(f *front, ops ...Op) *Outcome {
	n := min(len(f.line), 3)
	s := &Step{Ops: ops, Candidates: f.line[:n], Behind: len(f.line) > n}
	if len(f.line) > 0 {
		s.Head = f.line[0].Arrival
	}
	for _, op := range ops {
		if r, isRelease := op.Request.(semaphore.Release); isRelease {
			delete(c.held, r.Holder)
		}
	}
	before := c.unreserved(f)
	o := f.rig.step(c.key, s)
	after := c.unreserved(f)
	for i, reply := range o.Served {
		g, ok := reply.Value.(*semaphore.Grant)
		if !ok || g.Replayed || g.Holder != f.line[i].Acquire.Holder || g.Token <= c.token {
			c.Fatalf("served: got %+v, want a grant to %s above token %d", reply, f.line[i].Acquire.Holder, c.token)
		}
		for server, arrival := range before {
			if after[server] == arrival && arrival < f.line[i].Arrival {
				c.Fatalf("served: %s, which joined as number %d, before number %d at server %d", g.Holder, f.line[i].Arrival, arrival, server)
			}
		}
		c.token = g.Token
		c.held[g.Holder] = f.line[i].Acquire.Permits
	}
	f.line = f.line[len(o.Served):]
	return o
}

// unreserved are the heads of the lines at other servers for whom nothing is reserved: their arrivals.
func (c *crowd) unreserved(f *front) map[uint64]int64 {
	heads := map[uint64]int64{}
	line, _ := f.rig.do("HGET", f.rig.lib.layout.stem(c.key)+metaEnd, "line").(string)
	for entry := range strings.SplitSeq(line, ";") {
		var name string
		var arrival, want, alive, reserved, till int64
		if n, _ := fmt.Sscan(entry, &name, &arrival, &want, &alive, &reserved, &till); n < 6 || reserved > 0 || alive < f.rig.clock() {
			continue
		}
		if id, err := server(name); err == nil && id != f.rig.server {
			heads[id] = arrival
		}
	}
	return heads
}

func (c *crowd) inUse() (n int64) {
	for _, permits := range c.held {
		n += permits
	}
	return n
}

func (c *crowd) anyFront() *front { return rapid.SampledFrom(c.fronts).Draw(c.T, "server") }

func (c *crowd) balance() {
	l := c.fronts[0].rig.lib.layout
	free := c.fronts[0].rig.do("LLEN", l.Permits(c.key)).(int64)
	members := c.fronts[0].rig.do("ZCARD", l.Holders(c.key)).(int64)
	if free+members != c.capacity || c.inUse() > members {
		c.Fatalf("free %d, members %d, in use %d, want %d permits in all", free, members, c.inUse(), c.capacity)
	}
}

func (c *crowd) wait() {
	f := c.anyFront()
	c.arrivals++
	w := waiter(fmt.Sprintf("w%d", c.arrivals), rapid.Int64Range(1, min(2, c.capacity)).Draw(c.T, "permits"), c.arrivals)
	f.line = append(f.line, w)
	c.call(f)
}

func (c *crowd) leave() {
	f := c.anyFront()
	if len(f.line) == 0 {
		return
	}
	i := rapid.IntRange(0, len(f.line)-1).Draw(c.T, "who leaves")
	f.line = append(f.line[:i:i], f.line[i+1:]...)
	c.call(f)
}

// release frees what somebody holds, through any server.
func (c *crowd) release() {
	for n := range c.arrivals {
		holder := fmt.Sprintf("w%d", n+1)
		if c.held[holder] > 0 {
			f := c.anyFront()
			c.call(f, Op{Request: semaphore.Release{Key: c.key, Holder: holder}, Ticket: f.rig.ticket()})
			return
		}
	}
}

// drain has all who wait served, in turn, and checks that each call makes progress before long.
func (c *crowd) drain() {
	for rounds := 0; ; rounds++ {
		waiting := 0
		for _, f := range c.fronts {
			c.call(f)
			waiting += len(f.line)
		}
		if waiting == 0 {
			return
		}
		if rounds > 20*int(c.arrivals)+20 {
			c.Fatalf("%d wait for ever, %d of %d permits are in use", waiting, c.inUse(), c.capacity)
		}
		c.release()
	}
}

func TestServersShareALine(t *testing.T) {
	r, n := newRig(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		c := &crowd{T: t, key: fmt.Sprintf("k%d", n), capacity: rapid.Int64Range(1, 3).Draw(t, "capacity"), held: map[string]int64{}}
		for i := range rapid.IntRange(1, 3).Draw(t, "servers") {
			server := *r
			server.server, server.serial = uint64(100*n+i), 0
			c.fronts = append(c.fronts, &front{rig: &server})
		}
		c.fronts[0].rig.create(c.key, c.capacity)
		t.Repeat(map[string]func(*rapid.T){
			"wait":    func(t *rapid.T) { c.T = t; c.wait() },
			"poll":    func(t *rapid.T) { c.T = t; c.call(c.anyFront()) },
			"leave":   func(t *rapid.T) { c.T = t; c.leave() },
			"release": func(t *rapid.T) { c.T = t; c.release() },
			"":        func(t *rapid.T) { c.T = t; c.balance() },
		})
		c.T = t
		c.drain()
		for len(c.held) > 0 {
			c.release()
		}
		c.balance()
		if free := c.fronts[0].rig.info(c.key).Available; free != c.capacity {
			t.Fatalf("available: got %d, want %d", free, c.capacity)
		}
	})
}
