package client

import (
	"context"
	"errors"
	"fmt"
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

// Acquire gets a permit of the named semaphore, or says why there is none: ErrInvalid, ErrNoPermit,
// ErrUnavailable, an *Error of the server (ErrNoSemaphore, ErrTooMany, …), a *LostError where a lease was
// over before its grant was read, ErrClosed, or the cause of ctx. Then nothing is held and nobody stands in
// line, or soon will be so, as far as servers can be reached to make sure.
//
// The permit's context is made from ctx, which is meant to last for the whole work: bound the waiting
// by Wait. The permit is held until Release, also when ctx has ended.
func (c *Client) Acquire(ctx context.Context, name string, options ...Option) (*Permit, error) {
	r, err := newRequest(name, options)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if r.announce != nil {
		r.announce(r.holder)
	}
	a := &acquisition{request: r, client: c, began: c.now(), tries: tries{client: c}}
	g, err := a.run(ctx)
	g.replayed = g.replayed && r.named // a holder that was made for this Acquire can have had it by no other
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
	// late is where the answer comes that was not waited for, to an attempt that does not stand in line.
	late <-chan answer
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
		return a.sendNow(ctx, at)
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

// sendNow sends a request that does not wait in line. It has no line of its own that could be hung up, so
// what comes of it when ctx ends has to be waited for: see abandon.
func (a *acquisition) sendNow(ctx context.Context, at *node) (any, error) {
	answered, err := a.client.begin(ctx, at.calls, answerTimeout, a.command(0)...)
	if err != nil {
		return nil, err
	}
	select {
	case got := <-answered:
		return got.value, got.err
	case <-ctx.Done():
		a.late = answered
		return nil, &unanswered{err: context.Cause(ctx), sent: true}
	}
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

// abandon takes back what an attempt has brought about, or may have: a place in line, or a permit. It does
// so once the answer is there to an attempt that was not waited for, which nothing can overtake then.
func (a *acquisition) abandon() {
	if a.late == nil {
		a.takeBack()
		return
	}
	// Where the client is closed already, its connections are as well, and the server notices that.
	a.client.tasks.Go(func() {
		got := <-a.late
		if g, err := readGrant(got.value, 0); got.err == nil && err == nil && !g.replayed {
			a.token = g.token
		}
		a.takeBack()
	})
}

// takeBack leaves the line and releases. A holder that the caller named may be held by somebody else, who
// must not lose it by our failure.
func (a *acquisition) takeBack() {
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
