package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// keep is the goroutine of a permit.
func (p *Permit) keep() {
	defer close(p.kept)
	k := &keeper{now: p.client.now, renew: p.renew, tell: p.prolong}
	if reason := k.run(p.grant.lease, p.stop, p.client.ctx.Done()); reason != nil {
		p.lose(reason)
	}
	if p.client.ctx.Err() != nil {
		p.cancel(ErrClosed)
	}
}

func (p *Permit) prolong(l lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease = l
}

// renew sends one renewal, to the server that is asked at present, for the lease that was asked for: another
// process that knows the holder may have set another one. Where the semaphore does not allow that one any
// more, the next renewal names none, and goes on with what is allowed.
func (p *Permit) renew(within time.Duration) <-chan renewal {
	c := p.client
	answered := make(chan renewal, 1)
	c.tasks.Go(func() {
		at := c.nodes.current()
		r := renewal{asked: c.now()}
		args := []any{"SEM.RENEW", p.Name(), p.Holder()}
		if !p.cut.Load() {
			args = append(args, p.request.leaseArgs()...)
		}
		reply, err := c.exchange(c.ctx, at.calls, within, append(args, "TOKEN", p.Token())...)
		var refused *Error
		var none *unanswered
		switch {
		case err == nil:
			r.left, err = readRenewal(reply)
		case errors.As(err, &none):
			c.nodes.leave(at)
		case errors.As(err, &refused) && refused.Code == semaphore.CodeInvalid:
			p.cut.Store(true)
		}
		r.err = err
		answered <- r
	})
	return answered
}

// renewal is what one attempt to renew brought.
type renewal struct {
	asked time.Duration // before it was sent
	left  time.Duration // the lease in force; 0: not held; less: it never ends
	err   error
}

// keeper renews one lease until it is stopped, or the lease is over.
type keeper struct {
	now   func() time.Duration
	renew func(within time.Duration) <-chan renewal
	tell  func(lease) // called with every lease that was got

	lease   lease
	longest time.Duration
	next    time.Duration // when to renew
	pending <-chan renewal
	failure error // of the last attempt
}

// run returns why the lease is over, or nil when it was stopped before.
func (k *keeper) run(l lease, stop, closed <-chan struct{}) error {
	k.got(l)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(k.sleep())
		select {
		case <-stop:
			return nil
		case <-closed:
			return nil
		case r := <-k.pending:
			k.pending = nil
			if err := k.settle(r); err != nil {
				return err
			}
		case <-timer.C:
		}
		if k.lease.forever() {
			continue
		}
		now := k.now()
		if now >= k.lease.ends() {
			return k.reason()
		}
		if k.pending == nil && now >= k.next {
			k.pending = k.renew(min(k.lease.try(), k.lease.ends()-now))
		}
	}
}

// sleep is how long nothing is to be done, unless an answer comes.
func (k *keeper) sleep() time.Duration {
	if k.lease.forever() {
		return time.Hour
	}
	until := k.lease.ends()
	if k.pending == nil {
		until = min(until, k.next)
	}
	return min(max(0, until-k.now()), k.lease.glance())
}

func (k *keeper) got(l lease) {
	k.lease, k.next, k.failure = l, l.due(), nil
	k.longest = max(k.longest, l.length)
	k.tell(l)
}

// settle takes in the answer to a renewal. An error says that the lease is over.
func (k *keeper) settle(r renewal) error {
	switch {
	case r.err != nil:
		k.failure, k.next = r.err, k.now()+k.lease.pause()
		return nil
	case r.left == 0 && k.cut():
		return ErrMaxHold
	case r.left == 0:
		return ErrNotHeld
	}
	k.got(lease{asked: r.asked, length: max(0, r.left)})
	return nil
}

// cut says that the server gave less than it did before, which it does where nothing longer is allowed.
func (k *keeper) cut() bool { return k.lease.length < k.longest-k.longest/100 }

// reason says why a lease that was kept as well as possible is over.
func (k *keeper) reason() error {
	switch {
	case k.failure != nil:
		return fmt.Errorf("%w: %w", ErrNotRenewed, k.failure)
	case k.cut():
		return ErrMaxHold
	default:
		return ErrNotRenewed
	}
}
