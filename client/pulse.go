package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pingEvery and pingTimeout make a silent server known in three seconds: soon enough to take over a
	// place in line at the next one, where it is kept for five (the servers' default) after a node is lost.
	pingEvery   = time.Second
	pingTimeout = 2 * time.Second
	// minPatience is the least time for which a server has to be silent before a wait there is given up.
	minPatience = time.Second
)

// pulse asks a server for signs of life while requests wait there, and ends their waits when there is
// none: to wait in vain for an answer looks just as to wait in line.
type pulse struct {
	client *Client
	node   *node
	heard  atomic.Int64 // when there was a sign of life, by the client's clock

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

// alive notes a sign of life.
func (p *pulse) alive() { p.heard.Store(int64(p.client.now())) }

// last is when there was one.
func (p *pulse) last() time.Duration { return time.Duration(p.heard.Load()) }

// beat asks for as long as somebody waits.
func (p *pulse) beat() {
	c := p.client
	half := max(c.config.Patience, minPatience) / 2
	for c.sleep(c.ctx, min(pingEvery, half)) == nil {
		if p.rest() {
			return
		}
		_, err := c.exchange(c.ctx, p.node.calls, min(pingTimeout, half), "PING")
		var none *unanswered
		if !errors.As(err, &none) {
			p.alive()
			continue
		}
		for _, end := range p.all() {
			end(fmt.Errorf("no sign of life: %w", none.err))
		}
	}
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
