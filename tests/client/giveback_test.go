package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/internal/trial"
)

// The request of a caller who has gone arrives when the network is mended, and what it gets is given back,
// by whatever holder, and also what would never expire.
func TestAcquireThatIsBrokenOffLeavesNothingBehind(t *testing.T) {
	for name, options := range map[string][]client.Option{
		"a lease":           {client.Lease(time.Hour)},
		"no end":            {client.Persist()},
		"a holder's, named": {client.Lease(time.Hour), client.Holder("h")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.do("SEM.CREATE", "loader", 1)
			network := b.proxy()
			c := b.client(network.Addr)
			b.release(b.acquire(c, "loader")) // there is a connection
			grants := b.info("loader", "grants_immediate")
			network.Silence()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := c.Acquire(ctx, "loader", options...); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want %v", err, context.DeadlineExceeded)
			}

			network.Restore()

			b.want("loader", "grants_immediate", grants+1)
			b.want("loader", "in_use", 0)
		})
	}
}

// A renewal whose answer was lost has lengthened the lease: whoever gives the permit up says so.
func TestPermitThatWasNotKnownToBeRenewedIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	network := b.proxy()
	p := b.acquire(b.client(network.Addr), "loader", client.Capacity(1), client.Lease(3*time.Second))
	network.Deafen()
	b.wait(p.Context().Done(), "the end of the permit's context")
	network.Restore()

	b.lost(p, client.ErrNotRenewed)

	if got := b.info("loader", "in_use"); got != 0 {
		t.Errorf("in_use: got %d, want the permit given back", got)
	}
	b.want("loader", "expirations", 0)
}

func TestCallWithADeadlineGoesToTheNextServer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	silent := play(t, map[string][]string{"SEM.HELP": {silence}})
	c := b.client(silent.Addr(), b.node.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()

	if _, err := c.Call(ctx, "SEM.HELP"); err != nil {
		t.Errorf("got %v, want the answer of the second server", err)
	}
}

func TestLeaseOfAPermitStaysAsItWasAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.acquire(b.client(), "loader", client.Capacity(1), client.Lease(3*time.Second))
	remaining := func() int64 {
		return b.do("SEM.HOLDERS", "loader").([]any)[1].([]any)[0].([]any)[4].(int64)
	}

	b.do("SEM.RENEW", "loader", p.Holder(), "LEASE", time.Hour.Milliseconds())

	trial.Until(t, "the lease is 3 s again", func() bool { return remaining() <= 3000 })

	b.do("SEM.RESIZE", "loader", 1, "MAXLEASE", 1500)

	renewals := b.info("loader", "renewals")
	trial.Until(t, "it is renewed for what is allowed", func() bool {
		return b.info("loader", "renewals") > renewals && remaining() <= 1500
	})
	b.release(p)
	b.want("loader", "expirations", 0)
}

func TestClientRefusesWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, err := client.New(client.Config{Addrs: []string{b.node.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context()); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("a call without words: got %v, want %v", err, client.ErrInvalid)
	}
	if _, err := c.Acquire(t.Context(), "loader", client.Fresh()); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("Fresh without a Holder: got %v, want %v", err, client.ErrInvalid)
	}
	if _, err := c.Acquire(t.Context(), "loader", nil); !errors.Is(err, client.ErrNoSemaphore) {
		t.Errorf("an option that is nil: got %v, want %v", err, client.ErrNoSemaphore)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Errorf("closed twice: got %v", err)
	}
}
