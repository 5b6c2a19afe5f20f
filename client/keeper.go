package client

import (
	"fmt"
	"time"
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

// renew sends one renewal, to the server that is asked at present. It names no lease: the length last
// given goes on, cut by what the semaphore allows by now.
func (p *Permit) renew(within time.Duration) <-chan renewal {
	c := p.client
	answered := make(chan renewal, 1)
	c.tasks.Go(func() {
		at := c.nodes.current()
		r := renewal{asked: c.now()}
		reply, err := c.exchange(c.ctx, at.calls, within, "SEM.RENEW", p.Name(), p.Holder(), "TOKEN", p.Token())
		if err == nil {
			r.left, err = readRenewal(reply)
		} else {
			c.nodes.leave(at)
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
