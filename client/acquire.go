package client

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// prompt is how soon an answer comes to a request that did not stand in line. What comes later is
	// renewed before it is relied on.
	prompt = 2 * time.Millisecond
	// answerSlack is how long after its WAIT an answer may still come: the server promises a second.
	answerSlack = 5 * time.Second
	// abandonTimeout is how long to try to take back a request that may have been applied.
	abandonTimeout = time.Second
)

// Acquire gets a permit of the named semaphore, or says why there is none: ErrNoPermit, ErrUnavailable,
// an *Error of the server (ErrNoSemaphore, ErrTooMany, …), or the cause of ctx. Then nothing is held and
// nobody stands in line, as far as servers can be reached to make sure.
//
// The permit's context is made from ctx, which is meant to last for the whole work: bound the waiting
// by Wait. The permit is held until Release, also when ctx has ended.
func (c *Client) Acquire(ctx context.Context, name string, options ...Option) (*Permit, error) {
	r, err := newRequest(name, options)
	if err != nil {
		return nil, err
	}
	if r.announce != nil {
		r.announce(r.holder)
	}
	a := &acquisition{request: r, client: c, began: c.now(), tries: tries{client: c}}
	g, err := a.run(ctx)
	switch {
	case errors.Is(err, ErrUnavailable) && r.unavailable == FailOpen:
		return c.unguarded(ctx, r), nil
	case err != nil:
		return nil, err
	}
	return c.permit(ctx, r, g)
}

// acquisition is a request on its way to a grant.
type acquisition struct {
	*request
	client *Client
	began  time.Duration
	tries  tries
	token  int64 // of a grant that was made to this acquisition, and to nobody else; 0: none
	// given are the lines on which no answer came. They are hung up at the end only: a server that
	// noticed it sooner would strike us off the line of waiters before the next server has taken over
	// our place there.
	given []*redis.Client
}

// left is what remains of the wait.
func (a *acquisition) left() time.Duration { return a.wait - (a.client.now() - a.began) }

// run asks until there is an answer that counts.
func (a *acquisition) run(ctx context.Context) (grant, error) {
	defer a.hangUp()
	for {
		at := a.client.nodes.current()
		began := a.client.now()
		g, err := a.once(ctx, at)
		if err == nil {
			return g, nil
		}
		var lost *LostError
		if errors.As(err, &lost) && a.left() > 0 && ctx.Err() == nil {
			continue // the lease was over before the answer was read; there is time to stand in line again
		}
		if heard := at.pulse.last(); heard > began {
			a.tries.failed, began = 0, heard
		}
		if err := a.tries.again(ctx, at, began, err); err != nil {
			a.hangUp()
			a.abandon()
			return grant{}, err
		}
	}
}

// once asks one server. A grant that is not as good as new is renewed first.
func (a *acquisition) once(ctx context.Context, at *node) (grant, error) {
	if err := a.tries.look(ctx, at); err != nil {
		return grant{}, err
	}
	wait := max(0, a.left())
	asked := a.client.now()
	reply, err := a.send(ctx, at, wait)
	if err != nil {
		return grant{}, err
	}
	if reply == nil {
		return grant{}, ErrNoPermit
	}
	g, err := readGrant(reply, asked)
	if err != nil {
		return grant{}, err
	}
	if !g.replayed {
		a.token = g.token
	}
	took := a.client.now() - asked
	late := wait > 0 && took > prompt || !g.lease.forever() && took > g.lease.length/10
	if !g.replayed && !late {
		return g, nil
	}
	return a.confirm(ctx, at, g)
}

// send sends the request, on a line of its own if it may have to wait.
func (a *acquisition) send(ctx context.Context, at *node, wait time.Duration) (any, error) {
	if wait == 0 {
		return a.client.exchange(ctx, at.calls, answerTimeout, a.command(0)...)
	}
	line := at.line()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	at.pulse.join(a, cancel)
	defer at.pulse.leave(a)
	reply, err := a.client.exchange(ctx, line, wait+answerSlack, a.command(wait)...)
	var none *unanswered
	if errors.As(err, &none) {
		a.given = append(a.given, line)
		return nil, err
	}
	at.keep(line)
	if errors.Is(err, ErrSuperseded) && a.tries.sent && !a.named {
		// Nobody else knows this holder: it was an earlier attempt of ours that arrived late.
		at.pulse.alive()
		return nil, &unanswered{err: err, sent: true}
	}
	return reply, err
}

// hangUp closes the lines that were given up.
func (a *acquisition) hangUp() {
	for _, line := range a.given {
		_ = line.Close() // nothing is awaited from it
	}
	a.given = nil
}

// confirm renews a grant of unknown age, so that its lease counts from now.
func (a *acquisition) confirm(ctx context.Context, at *node, g grant) (grant, error) {
	args := append([]any{"SEM.RENEW", a.name, a.holder}, a.leaseArgs()...)
	g.lease.asked = a.client.now()
	reply, err := a.client.exchange(ctx, at.calls, answerTimeout, append(args, "TOKEN", g.token)...)
	if err != nil {
		return grant{}, err
	}
	left, err := readRenewal(reply)
	switch {
	case err != nil:
		return grant{}, err
	case left == 0:
		a.token = 0
		return grant{}, &LostError{Name: a.name, Holder: a.holder, Token: g.token, Reason: ErrNotHeld}
	}
	g.lease.length = max(left, 0)
	return g, nil
}

// abandon takes back what an attempt has brought about, or may have: a place in line, or a permit. A
// holder that the caller named may be held by somebody else, who must not lose it by our failure.
func (a *acquisition) abandon() {
	if !a.tries.sent && a.token == 0 {
		return
	}
	c := a.client
	ctx, cancel := context.WithTimeout(c.ctx, abandonTimeout)
	defer cancel()
	for range c.nodes.all {
		at := c.nodes.current()
		_, err := c.exchange(ctx, at.calls, abandonTimeout, "SEM.CANCEL", a.name, a.holder)
		if err != nil {
			c.nodes.leave(at)
			continue
		}
		release := []any{"SEM.RELEASE", a.name, a.holder}
		switch {
		case a.token != 0:
			release = append(release, "TOKEN", a.token)
		case a.named:
			return
		}
		// Where it fails, the permit comes back when its lease ends.
		_, _ = c.exchange(ctx, at.calls, abandonTimeout, release...)
		return
	}
}
