package redisbackend

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// loops is over how many goroutines the desks are spread.
const loops = 4

// core is the engine without its connections: desks over books.
type core struct {
	office office
	loops  [loops]*loop
	over   [loops]bool
	seed   maphash.Seed
	run    sync.WaitGroup
}

func newCore(b books, limits semaphore.Limits, hold time.Duration, m *Metrics) *core {
	c := &core{seed: maphash.MakeSeed()}
	c.office.books, c.office.limits, c.office.hold, c.office.metrics = b, limits, hold, m
	c.office.window = leastWindow
	c.office.incarnation, c.office.hunting = incarnation(), make(hunting, hunters)
	for i := range c.loops {
		c.loops[i] = newLoop(&c.office)
	}
	return c
}

// start lets the loops go. What comes before is kept.
func (c *core) start() {
	for i, l := range c.loops {
		c.run.Go(func() { l.run(&c.over[i]) })
	}
}

// incarnation is a number that no other life of a server has.
func incarnation() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

func (c *core) loop(key string) *loop {
	return c.loops[maphash.String(c.seed, key)%loops]
}

// do carries out requests for one semaphore, in their order, into replies.
func (c *core) do(key string, requests []semaphore.Request, replies []semaphore.Reply) {
	e := &errand{replies: replies, done: make(chan struct{})}
	e.left.Store(int64(len(requests)))
	items := make([]item, len(requests))
	now := time.Now()
	for i, r := range requests {
		items[i] = item{request: r, ticket: c.office.ticket(), since: now, errand: e, index: i}
		if a, ok := r.(semaphore.Acquire); ok && a.Wait > 0 {
			items[i].waiter = newWaiter(a, items[i].ticket, now)
		}
	}
	l := c.loop(key)
	posted := l.post(func() {
		d := l.desk(key)
		for i := range items {
			d.enqueue(&items[i])
		}
	})
	if !posted {
		for i := range replies {
			replies[i] = semaphore.Reply{Err: semaphore.ErrShutdown}
		}
		return
	}
	<-e.done
}

// giveBack returns a grant that was never told.
func (c *core) giveBack(key string, g *semaphore.Grant) {
	l := c.loop(key)
	l.post(func() {
		l.desk(key).enqueue(&item{
			request: script.GiveBack{Key: key, Holder: g.Holder, Token: g.Token, Ticket: g.Ticket},
			ticket:  c.office.ticket(),
			since:   time.Now(),
		})
	})
}

// wake has a semaphore looked at, if somebody waits for it here.
func (c *core) wake(key string) {
	l := c.loop(key)
	l.post(func() {
		if d := l.desks[key]; d != nil {
			d.wake()
		}
	})
}

// wakeAll has all semaphores looked at for which somebody waits here.
func (c *core) wakeAll() {
	for _, l := range c.loops {
		l.post(func() {
			for _, d := range l.desks {
				d.wake()
			}
		})
	}
}

// close ends the loops. What is under way may end until ctx does; what is not decided then is
// answered so.
func (c *core) close(ctx context.Context) {
	for i, l := range c.loops {
		l.post(func() { l.drain(ctx, &c.over[i]) })
	}
	c.run.Wait()
}
