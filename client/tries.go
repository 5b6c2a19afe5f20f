package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// tries are the attempts at one request: each at the next server, until one answers or none has for
// too long.
type tries struct {
	client *Client
	failed int
	since  time.Duration // when the first of them began
	pause  time.Duration
	sent   bool  // one of them may have been applied
	why    error // what a server said rather than that one could not be reached
}

// again waits until the next attempt is due, after one at this node that began then and ended with err. An
// error says that there is to be none: err itself where it is an answer, or ErrUnavailable, or how ctx
// ended.
func (t *tries) again(ctx context.Context, at *node, began time.Duration, err error) error {
	var none *unanswered
	if !errors.As(err, &none) {
		return err
	}
	t.sent = t.sent || none.sent
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c := t.client
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	c.nodes.leave(at)
	if t.failed == 0 {
		t.since, t.why = began, nil
	}
	var said *Error
	if t.why == nil || errors.As(none.err, &said) {
		t.why = fmt.Errorf("%s: %w", at.addr, none.err)
	}
	t.failed++
	if t.failed < len(c.nodes.all) {
		return nil
	}
	if c.now()-t.since >= c.config.Patience {
		return fmt.Errorf("%w: %w", ErrUnavailable, t.why)
	}
	if t.failed%len(c.nodes.all) != 0 {
		return nil
	}
	t.pause = min(max(2*t.pause, firstPause), lastPause)
	// Clients that lost the same server do not come back in the same moment.
	return c.sleep(ctx, t.pause/2+rand.N(t.pause/2))
}

// look asks a server that is tried after another attempt has failed whether there is a point in it.
func (t *tries) look(ctx context.Context, at *node) error {
	if t.failed == 0 {
		return nil
	}
	return t.client.ready(ctx, at)
}

// sleep waits, unless ctx or the client ends.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return ErrClosed
	}
}
