package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// releaseTimeout is how long Release tries to reach a server, and releaseTry how long one of its
// attempts takes. It ends with the lease in any case.
const (
	releaseTimeout = 10 * time.Second
	releaseTry     = 3 * time.Second
)

// Permit is what an Acquire got, until Release. Its methods may be called from many goroutines at once.
type Permit struct {
	client  *Client
	request *request
	grant   grant
	guarded bool

	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed when it is not to be kept any more
	kept   chan struct{} // closed when the keeper has ended
	cut    atomic.Bool   // the lease that was asked for is not allowed any more

	mu    sync.Mutex
	lease lease
	lost  *LostError

	release  sync.Once
	released error
}

// permit hands out a grant and begins to keep it.
func (c *Client) permit(ctx context.Context, r *request, g grant) (*Permit, error) {
	p := c.unguarded(ctx, r)
	p.guarded, p.grant, p.lease = true, g, g.lease
	p.kept = make(chan struct{})
	if !c.tasks.Go(p.keep) { // it comes back when its lease ends, as every permit of a client that was closed
		return nil, ErrClosed
	}
	return p, nil
}

// unguarded makes a permit that holds nothing.
func (c *Client) unguarded(ctx context.Context, r *request) *Permit {
	p := &Permit{client: c, request: r, stop: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	return p
}

// Name is the semaphore's.
func (p *Permit) Name() string { return p.request.name }

// Holder is the id under which it is held. With it and the token, any process can release it.
func (p *Permit) Holder() string { return p.request.holder }

// Token is the fencing token: it grows with every grant. 0 where the permit is not Guarded.
func (p *Permit) Token() int64 { return p.grant.token }

// Slot is the lowest place that it occupies, out of 0 … capacity-1; -1 where there is none.
func (p *Permit) Slot() int64 {
	if len(p.grant.slots) == 0 {
		return -1
	}
	return p.grant.slots[0].First
}

// Slots are all places that it occupies, in growing order. A write to a guarded resource presents every
// one of them, with the token.
func (p *Permit) Slots() []Slots { return slices.Clone(p.grant.slots) }

// Replayed says that the Holder, which the caller named, had this permit already.
func (p *Permit) Replayed() bool { return p.grant.replayed }

// Guarded is false where no server could be reached and FailOpen was asked for: nothing is held.
func (p *Permit) Guarded() bool { return p.guarded }

// Context ends when the work has to stop: when the permit is lost, released, or what Acquire was given
// ends. context.Cause tells which: a *LostError, ErrReleased, ErrClosed, or the parent's cause.
func (p *Permit) Context() context.Context { return p.ctx }

// Err is nil while the work may go on, and then the cause of the end of Context. It looks at the clock
// itself, so it knows at once after a process or a machine was stopped for a while.
func (p *Permit) Err() error {
	if p.ctx.Err() == nil && p.Left() == 0 {
		p.lose(ErrNotRenewed)
	}
	return context.Cause(p.ctx)
}

// Left is how long the permit lasts if it is not renewed any more; 0: it does not. For a permit that
// never ends, or that is not Guarded, it is the longest duration that there is.
func (p *Permit) Left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.lost != nil:
		return 0
	case p.lease.forever():
		return 1<<63 - 1
	}
	return max(0, p.lease.ends()-p.client.now())
}

// lose ends the permit for a reason, unless it has ended.
func (p *Permit) lose(reason error) {
	p.mu.Lock()
	if p.lost == nil {
		p.lost = &LostError{Name: p.Name(), Holder: p.Holder(), Token: p.Token(), Reason: reason}
	}
	lost := p.lost
	p.halt()
	p.mu.Unlock()
	p.cancel(lost)
}

// Detach leaves the permit to others: it is not renewed any more, and not released. Whoever knows its
// name, holder and token may renew and release it until its lease ends. A Release that follows does
// nothing. The error is a *LostError if it was lost before.
func (p *Permit) Detach() error {
	p.release.Do(func() { p.released = p.end() })
	return p.released
}

// Release gives the permit back, and may be called more than once. It takes no context, for it has to be
// done also when everything else has ended; it tries for 10 s at most. The error is a *LostError if
// the permit was lost before, so that the work was not guarded to its end; or it says that no server
// could be told, so that the permit comes back when its lease ends.
func (p *Permit) Release() error {
	p.release.Do(func() { p.released = p.giveBack() })
	return p.released
}

// end stops keeping the permit and returns how it was lost, if it was.
func (p *Permit) end() error {
	p.mu.Lock()
	p.halt()
	p.mu.Unlock()
	if p.kept != nil {
		<-p.kept
	}
	p.cancel(ErrReleased)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost != nil {
		return p.lost
	}
	return nil
}

// halt has the keeper stop. The caller holds mu.
func (p *Permit) halt() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
}

func (p *Permit) giveBack() error {
	err := p.end()
	switch {
	case !p.guarded, errors.Is(err, ErrNotHeld):
		return err
	case err != nil:
		p.disown()
		return err
	}
	c := p.client
	limit := releaseTimeout
	if !p.lease.forever() {
		limit = min(limit, p.lease.asked+p.lease.length-c.now())
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	reply, repeated, err := c.ask(ctx, releaseTry, "SEM.RELEASE", p.Name(), p.Holder(), "TOKEN", p.Token())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("release the permit of %q: %w", p.Name(), ErrUnavailable)
	case err != nil:
		return fmt.Errorf("release the permit of %q: %w", p.Name(), err)
	case reply == int64(0) && !repeated:
		p.lose(ErrNotHeld)
		return p.lost
	}
	return nil
}

// disown gives a permit back that was lost without a word of the server: a renewal may have arrived there
// whose answer did not arrive here.
func (p *Permit) disown() {
	ctx, cancel := context.WithTimeout(p.client.ctx, abandonTimeout)
	defer cancel()
	// Where it fails, the permit comes back when its lease ends.
	_, _, _ = p.client.ask(ctx, abandonTimeout, "SEM.RELEASE", p.Name(), p.Holder(), "TOKEN", p.Token())
}

// Do does work while it holds a permit, and gives it back however the work ends, also by a panic. The
// work's context is the permit's. Do returns what Acquire refused with; or the work's error, joined
// with a *LostError if the permit was lost before the work had ended. That a server could not be told of
// the end is no error of the work.
func (c *Client) Do(ctx context.Context, name string, work func(context.Context, *Permit) error, options ...Option) (err error) {
	p, err := c.Acquire(ctx, name, options...)
	if err != nil {
		return err
	}
	defer func() {
		var lost *LostError
		if errors.As(p.Release(), &lost) {
			err = errors.Join(err, lost)
		}
	}()
	return work(p.Context(), p)
}
