package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semserver/semserver/semaphore"
)

const (
	// signEvery and signTimeout make a silent server known in three seconds: soon enough to take over a
	// place in line at the next one, where it is kept for five (the servers' default) after a node is lost.
	signEvery   = time.Second
	signTimeout = 2 * time.Second
	// minPatience is the least time for which a server has to be silent before a wait there is given up.
	minPatience = time.Second
)

// pulse asks a server for signs of life while requests wait there, and ends their waits when there is
// none, or when it lives and has not been able to decide for too long: to wait in vain for an answer looks
// just as to wait in line.
type pulse struct {
	client *Client
	node   *node
	heard  atomic.Int64 // when it could decide, by the client's clock

	mu      sync.Mutex
	waits   map[*acquisition]context.CancelCauseFunc
	beating bool // a goroutine asks
}

func newPulse(c *Client, n *node) *pulse {
	return &pulse{client: c, node: n, waits: map[*acquisition]context.CancelCauseFunc{}}
}

// join watches over a wait until it leaves. end is called when the server is silent.
func (p *pulse) join(a *acquisition, end context.CancelCauseFunc) {
	p.mu.Lock()
	p.waits[a] = end
	begin := !p.beating
	p.beating = true
	p.mu.Unlock()
	if begin {
		p.client.tasks.Go(p.beat)
	}
}

func (p *pulse) leave(a *acquisition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, a)
}

// alive notes that the server lives and can decide.
func (p *pulse) alive() { p.heard.Store(int64(p.client.now())) }

// last is when that was.
func (p *pulse) last() time.Duration { return time.Duration(p.heard.Load()) }

// beat asks for as long as somebody waits.
func (p *pulse) beat() {
	c := p.client
	every := min(signEvery, max(c.config.Patience, minPatience)/2)
	for lame := time.Duration(0); c.sleep(c.ctx, every) == nil; {
		if p.rest() {
			return
		}
		err := c.ready(c.ctx, p.node)
		var none *unanswered
		switch {
		case !errors.As(err, &none):
			p.alive()
			lame = 0
			continue
		case errors.Is(err, semaphore.ErrDown):
			if lame += every; lame < p.tolerance() {
				continue
			}
		}
		for _, end := range p.all() {
			end(fmt.Errorf("no sign of life: %w", none.err))
		}
	}
}

// tolerance is for how long a server may be unable to decide. Another one may have a leader while this
// one is cut off, and keep our place; where there is none, to ask anew would only lose it.
func (p *pulse) tolerance() time.Duration {
	if len(p.client.nodes.all) > 1 {
		return signTimeout
	}
	return max(p.client.config.Patience, minPatience)
}

// rest says that nobody waits any more; then the next one to join begins anew.
func (p *pulse) rest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beating = len(p.waits) > 0
	return !p.beating
}

func (p *pulse) all() []context.CancelCauseFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []context.CancelCauseFunc
	for _, end := range p.waits {
		all = append(all, end)
	}
	return all
}
