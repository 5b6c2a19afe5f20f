package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/resp"
)

func TestPermitIsWhatTheServerKnows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()

	p := b.acquire(c, "loader", client.Capacity(8), client.Permits(3), client.Lease(time.Minute), client.Label("test"))

	rows := b.do("SEM.HOLDERS", "loader").([]any)[1].([]any)
	if len(rows) != 1 {
		t.Fatalf("holders: got %v, want one", rows)
	}
	row := rows[0].([]any)
	if row[0] != p.Holder() || row[1] != p.Token() || row[2] != p.Slot() || row[3] != int64(3) || row[6] != "test" {
		t.Errorf("the server has %v; got holder %q, token %d, slot %d", row, p.Holder(), p.Token(), p.Slot())
	}
	if want := []client.Slots{{First: 0, Last: 2}}; !slices.Equal(p.Slots(), want) {
		t.Errorf("slots: got %v, want %v", p.Slots(), want)
	}
	if left := p.Left(); left > time.Minute-650*time.Millisecond || left < 30*time.Second {
		t.Errorf("left: got %v, want a minute less the margin", left)
	}
	if p.Err() != nil || !p.Guarded() || p.Replayed() || p.Name() != "loader" {
		t.Errorf("got %v, guarded %v, replayed %v, name %q; want a new permit of loader", p.Err(), p.Guarded(), p.Replayed(), p.Name())
	}
	b.release(p)
	b.release(p)
	if !errors.Is(p.Err(), client.ErrReleased) {
		t.Errorf("after release: got %v, want %v", p.Err(), client.ErrReleased)
	}
	if got := b.info("loader", "in_use"); got != 0 {
		t.Errorf("in use after release: got %d, want 0", got)
	}
}

func TestNoPermitAndRefusalsHaveTheirErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	b.do("SEM.CREATE", "loader", 1)
	b.acquire(c, "loader", client.Holder("h"))
	for _, want := range []struct {
		err     error
		name    string
		options []client.Option
	}{
		{client.ErrNoPermit, "loader", nil},
		{client.ErrNoPermit, "loader", []client.Option{client.Wait(20 * time.Millisecond)}},
		{client.ErrNoSemaphore, "other", nil},
		{client.ErrTooMany, "loader", []client.Option{client.Permits(2)}},
		{client.ErrConflict, "loader", []client.Option{client.Holder("h"), client.Permits(2)}},
	} {
		if p, err := c.Acquire(t.Context(), want.name, want.options...); !errors.Is(err, want.err) || p != nil {
			t.Errorf("%s: got %v and %v, want %v", want.name, p, err, want.err)
		}
	}
	_, err := c.Acquire(t.Context(), "loader", client.Wait(100*time.Hour))
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != "ERR" {
		t.Errorf("a wait beyond the server's limit: got %v, want its refusal", err)
	}
}

func TestGrantFromTheLineIsRenewedBeforeItIsHandedOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	first := b.acquire(c, "loader", client.Capacity(1))
	next := b.start(t.Context(), c, "loader", client.Wait(time.Minute), client.Lease(time.Minute))
	trial.Await(b, func() error {
		if b.info("loader", "oldest_wait_ms") < 10 {
			return errors.New("nobody has waited for 10 ms")
		}
		return nil
	})
	before := b.info("loader", "renewals")

	b.release(first)
	p, err := b.answer(next)

	if err != nil {
		t.Fatal(err)
	}
	if got := b.info("loader", "renewals") - before; got != 1 {
		t.Errorf("renewals before the permit was handed out: got %d, want 1", got)
	}
	if p.Token() <= first.Token() || p.Slot() != 0 {
		t.Errorf("got token %d and slot %d, want a larger token than %d in slot 0", p.Token(), p.Slot(), first.Token())
	}
	b.release(p)
}

func TestPermitIsKeptForManyLeases(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.acquire(b.client(), "loader", client.Capacity(1), client.Lease(2*time.Second))

	trial.Await(b, func() error {
		if b.info("loader", "renewals") < 8 {
			return errors.New("fewer than 8 renewals")
		}
		return nil
	})

	if got := b.info("loader", "held_ms_total") + b.info("loader", "expirations"); got != 0 || p.Err() != nil {
		t.Errorf("got an end, and %v; want the permit held", p.Err())
	}
	b.holds(p)
	b.release(p)
}

func TestHolderIsToldThatSomebodyElseReleasedIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.acquire(b.client(), "loader", client.Capacity(1), client.Lease(1500*time.Millisecond))
	b.do("SEM.RELEASE", "loader", p.Holder())
	b.lost(p, client.ErrNotHeld)
}

func TestHolderIsToldThatItWasHeldForTooLong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.do("SEM.CREATE", "loader", 1, "MAXHOLD", 2500)
	p := b.acquire(b.client(), "loader", client.Lease(time.Second))
	b.lost(p, client.ErrMaxHold)
}

func TestFreshFencesOffTheHolderBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	old := b.acquire(c, "loader", client.Capacity(1), client.Holder("pod-1"), client.Lease(1500*time.Millisecond))

	p := b.acquire(c, "loader", client.Holder("pod-1"), client.Fresh(), client.Lease(1500*time.Millisecond))

	b.lost(old, client.ErrNotHeld)
	if p.Token() <= old.Token() || p.Err() != nil {
		t.Errorf("got token %d after %d and %v, want a new one that is held", p.Token(), old.Token(), p.Err())
	}
	b.release(p)
}

func TestDetachedPermitIsLeftToOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	p := b.acquire(c, "loader", client.Capacity(1), client.Lease(time.Minute))

	if err := p.Detach(); err != nil {
		t.Fatal(err)
	}
	b.release(p) // does nothing

	b.holds(p)
	again := b.acquire(c, "loader", client.Holder(p.Holder()))
	if !again.Replayed() || again.Token() != p.Token() {
		t.Errorf("got replayed %v and token %d, want the same grant, %d", again.Replayed(), again.Token(), p.Token())
	}
	b.release(again)
	b.want("loader", "in_use", 0)
}

func TestPersistentPermitIsHeldWithoutRenewal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	p := b.acquire(c, "loader", client.Capacity(1), client.Persist())
	if p.Left() < 1000*time.Hour || p.Err() != nil {
		t.Errorf("got %v and %v, want no end", p.Left(), p.Err())
	}
	if got := b.info("loader", "next_expiry_ms"); got != -1 {
		t.Errorf("next expiry: got %d, want none", got)
	}
	b.release(p)
}

func TestWhoeverGivesUpLeavesTheLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	first := b.acquire(c, "loader", client.Capacity(1))
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	next := b.start(ctx, c, "loader", client.Wait(time.Minute))
	b.want("loader", "waiters", 1)

	cancel(why)

	if _, err := b.answer(next); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if got := b.info("loader", "waiters"); got != 0 {
		t.Errorf("waiters: got %d, want 0", got)
	}
	b.release(first)
	if got := b.info("loader", "grants_waited"); got != 0 {
		t.Errorf("grants to waiters: got %d, want none", got)
	}
}

// TestGivingUpInTheMomentOfTheGrantLosesNothing releases and cancels at the same time, many times.
func TestGivingUpInTheMomentOfTheGrantLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	b.do("SEM.CREATE", "loader", 1)
	for range 50 {
		first := b.acquire(c, "loader", client.Wait(time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		next := b.start(ctx, c, "loader", client.Wait(time.Minute))
		b.want("loader", "waiters", 1)

		go cancel()
		b.release(first)

		if p, err := b.answer(next); err == nil {
			b.release(p)
		}
		b.want("loader", "in_use", 0)
	}
	if got := b.info("loader", "expirations"); got != 0 {
		t.Errorf("leases that had to end by themselves: got %d, want 0", got)
	}
}

func TestCloseTellsHoldersAndWaiters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, err := client.New(client.Config{Addrs: []string{b.node.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	p := b.acquire(c, "loader", client.Capacity(1))
	next := b.start(t.Context(), c, "loader", client.Wait(time.Minute))
	b.want("loader", "waiters", 1)

	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}

	if _, err := b.answer(next); !errors.Is(err, client.ErrClosed) {
		t.Errorf("the waiter got %v, want %v", err, client.ErrClosed)
	}
	if cause := context.Cause(p.Context()); !errors.Is(cause, client.ErrClosed) {
		t.Errorf("the holder got %v, want %v", cause, client.ErrClosed)
	}
	if _, err := c.Acquire(t.Context(), "loader"); !errors.Is(err, client.ErrClosed) {
		t.Errorf("afterwards: got %v, want %v", err, client.ErrClosed)
	}
	b.want("loader", "waiters", 0)
}

func TestManyAtOnceAreNeverMoreThanTheCapacity(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	const capacity, workers = 5, 200
	var inside, most, done atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			err := c.Do(t.Context(), "loader", func(ctx context.Context, p *client.Permit) error {
				now := inside.Add(1)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					continue
				}
				defer inside.Add(-1)
				done.Add(1)
				return p.Err()
			}, client.Capacity(capacity), client.Wait(time.Minute))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if done.Load() != workers || most.Load() > capacity || most.Load() < 1 {
		t.Errorf("got %d done, %d at once; want %d and at most %d", done.Load(), most.Load(), workers, capacity)
	}
	if got := b.info("loader", "releases"); got != workers {
		t.Errorf("releases: got %d, want %d", got, workers)
	}
}

func TestDoGivesBackHoweverTheWorkEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	b.do("SEM.CREATE", "loader", 1)
	why := errors.New("no rows")

	if err := c.Do(t.Context(), "loader", func(context.Context, *client.Permit) error { return why }); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v, want the work's panic", r)
			}
		}()
		_ = c.Do(t.Context(), "loader", func(context.Context, *client.Permit) error { panic("boom") })
	}()

	if got := b.info("loader", "in_use"); got != 0 {
		t.Errorf("in use: got %d, want 0", got)
	}
}

func TestDoSaysThatTheWorkWasNotGuardedToItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.client().Do(t.Context(), "loader", func(ctx context.Context, p *client.Permit) error {
		b.do("SEM.RELEASE", "loader", p.Holder())
		<-ctx.Done()
		return ctx.Err()
	}, client.Capacity(1), client.Lease(time.Second))
	var lost *client.LostError
	if !errors.As(err, &lost) || !errors.Is(err, client.ErrNotHeld) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the work's error and the loss", err)
	}
}

func TestPermitIsHeldWhileTheWorkWindsDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := b.client().Acquire(ctx, "loader", client.Capacity(1), client.Lease(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	b.wait(p.Context().Done(), "the end of the context")
	before := b.info("loader", "renewals")
	trial.Await(b, func() error {
		if b.info("loader", "renewals") < before+4 {
			return errors.New("not renewed")
		}
		return nil
	})
	b.release(p)
	b.want("loader", "in_use", 0)
}

func TestCallSendsAnyCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.client()
	if reply, err := c.Call(t.Context(), "SEM.CREATE", "loader", 3); err != nil || reply != "OK" {
		t.Errorf("got %v and %v, want OK", reply, err)
	}
	if _, err := c.Call(t.Context(), "SEM.INFO", "other"); !errors.Is(err, client.ErrNoSemaphore) {
		t.Errorf("got %v, want %v", err, client.ErrNoSemaphore)
	}
	if reply, err := b.look.Do("SEM.INFO", "loader"); err != nil {
		t.Error(err)
	} else if _, refused := reply.(resp.Error); refused {
		t.Errorf("SEM.INFO: got %v, want the semaphore that Call made", reply)
	}
}
