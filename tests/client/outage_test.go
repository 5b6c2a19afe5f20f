package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/proxy"
)

// TestContextEndsBeforeTheLeaseOfAHolderThatIsCutOff asks the server itself at the moment in which the
// holder is told.
func TestContextEndsBeforeTheLeaseOfAHolderThatIsCutOff(t *testing.T) {
	for name, cut := range map[string]bool{"silent": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			network := b.proxy()
			p := b.acquire(b.client(network.Addr), "loader", client.Capacity(1), client.Lease(2*time.Second))
			if network.Silence(); cut {
				network.Shut()
			}

			b.wait(p.Context().Done(), "the end of the permit's context")

			b.holds(p) // it was told before the lease was over
			b.lost(p, client.ErrNotRenewed)
			b.want("loader", "in_use", 0)
		})
	}
}

func TestOutageShorterThanTheLeaseIsSurvived(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	network := b.proxy()
	p := b.acquire(b.client(network.Addr), "loader", client.Capacity(1), client.Lease(6*time.Second))
	network.Shut()
	trial.Await(b, func() error {
		if p.Left() > 3*time.Second {
			return errors.New("the lease is not half over")
		}
		return nil
	})

	network.Restore()

	trial.Await(b, func() error {
		if b.info("loader", "renewals") == 0 {
			return errors.New("not renewed after the outage")
		}
		return nil
	})
	if p.Err() != nil {
		t.Errorf("got %v, want the permit held", p.Err())
	}
	b.release(p)
}

func TestRestartOfTheServerIsSurvived(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first, err := node.Start(binary, "127.0.0.1:0", data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Kill)
	b := &bench{T: t, node: first}
	c := b.client()
	p := b.acquire(c, "loader", client.Capacity(1), client.Lease(20*time.Second))
	next := b.start(t.Context(), c, "loader", client.Wait(time.Minute), client.Lease(20*time.Second))

	first.Kill()
	second, err := node.Start(binary, first.Addr, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Kill)

	if reply, err := c.Call(t.Context(), "SEM.CHECK", "loader", p.Holder(), p.Token()); err != nil || reply != int64(1) {
		t.Errorf("SEM.CHECK after the restart: got %v and %v, want 1", reply, err)
	}
	b.release(p)
	q, err := b.answer(next)
	if err != nil {
		t.Fatalf("who waited: got %v, want a permit", err)
	}
	if q.Token() <= p.Token() {
		t.Errorf("token: got %d, want more than %d", q.Token(), p.Token())
	}
	b.release(q)
}

func TestGrantWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "in line": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.do("SEM.CREATE", "loader", 3)
			network := b.proxy()
			c := b.client(network.Addr)
			b.release(b.acquire(c, "loader", client.Wait(wait))) // there is a connection now
			network.Deafen()
			p := b.start(t.Context(), c, "loader", client.Wait(wait), client.Lease(time.Minute))
			b.want("loader", "in_use", 1)

			network.Restore()
			network.Break()

			permit, err := b.answer(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.info("loader", "in_use"); got != 1 {
				t.Errorf("in use: got %d, want 1: nothing is taken twice", got)
			}
			b.holds(permit)
			b.release(permit)
		})
	}
}

func TestReleaseWhoseAnswerIsLostIsNoLoss(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	network := b.proxy()
	p := b.acquire(b.client(network.Addr), "loader", client.Capacity(1), client.Lease(time.Minute))
	network.Deafen()
	released := make(chan error, 1)
	go func() { released <- p.Release() }()
	b.want("loader", "in_use", 0)

	network.Restore()
	network.Break()

	if err := <-released; err != nil {
		t.Errorf("got %v, want it released", err)
	}
}

func TestNextServerIsAskedWhenOneIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.proxy(), b.proxy()
	free, err := node.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	c := b.client(free, one.Addr, two.Addr)
	p := b.acquire(c, "loader", client.Capacity(1), client.Lease(3*time.Second))
	next := b.start(t.Context(), c, "loader", client.Wait(time.Minute))
	b.want("loader", "waiters", 1)

	one.Shut()

	b.want("loader", "waiters", 1)
	trial.Await(b, func() error {
		if b.info("loader", "renewals") < 3 {
			return errors.New("not renewed through the other server")
		}
		return nil
	})
	b.release(p)
	q, err := b.answer(next)
	if err != nil {
		t.Fatal(err)
	}
	b.release(q)
}

// TestPlaceInLineIsKeptWhenAServerGivesNoSignOfLife moves to another server, and somebody else waits
// behind. In one case the first server learns that the client is gone from it, in the other it does not.
func TestPlaceInLineIsKeptWhenAServerGivesNoSignOfLife(t *testing.T) {
	for name, cut := range map[string]func(*proxy.Proxy){"silent": (*proxy.Proxy).Silence, "deaf": (*proxy.Proxy).Deafen} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			one, two := b.proxy(), b.proxy()
			c := b.configured(client.Config{Addrs: []string{one.Addr, two.Addr}, Patience: 2 * time.Second})
			b.do("SEM.CREATE", "loader", 1)
			b.do("SEM.ACQUIRE", "loader", "HOLDER", "other", "PERSIST")
			next := b.start(t.Context(), c, "loader", client.Wait(time.Minute))
			b.want("loader", "waiters", 1)
			behind := b.start(t.Context(), b.client(), "loader", client.Wait(time.Minute))
			b.want("loader", "waiters", 2)
			before := b.head("loader")

			cut(one)

			trial.Await(b, func() error {
				if b.head("loader")[4] == before[4] {
					return errors.New("still waits at the silent server")
				}
				return nil
			})
			if got := b.head("loader")[0]; got != before[0] {
				t.Errorf("head of the line: got %v, want %v as before", got, before[0])
			}
			b.do("SEM.RELEASE", "loader", "other")
			p, err := b.answer(next)
			if err != nil {
				t.Fatalf("got %v, want a permit by the other server", err)
			}
			b.release(p)
			q, err := b.answer(behind)
			if err != nil || q.Token() <= p.Token() {
				t.Fatalf("who waits behind: got %v, want a permit after the other", err)
			}
			b.release(q)
		})
	}
}

// TestRequestThatArrivesLateIsNoRivalOfItsRepeat has the first attempt stuck in the network while the second
// one waits already.
func TestRequestThatArrivesLateIsNoRivalOfItsRepeat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.proxy(), b.proxy()
	c := b.configured(client.Config{Addrs: []string{one.Addr, two.Addr}, Patience: 2 * time.Second})
	b.do("SEM.CREATE", "loader", 1)
	b.release(b.acquire(c, "loader", client.Wait(time.Minute))) // there is a connection now
	b.do("SEM.ACQUIRE", "loader", "HOLDER", "other", "PERSIST")
	one.Silence()
	next := b.start(t.Context(), c, "loader", client.Wait(time.Minute))
	b.want("loader", "waiters", 1)
	repeat := b.head("loader")

	one.Restore()

	trial.Await(b, func() error {
		if b.head("loader")[4] == repeat[4] {
			return errors.New("the first attempt has not arrived")
		}
		return nil
	})
	b.do("SEM.RELEASE", "loader", "other")
	p, err := b.answer(next)
	if err != nil {
		t.Fatalf("got %v, want a permit", err)
	}
	if got := b.info("loader", "in_use"); got != 1 {
		t.Errorf("in use: got %d, want 1", got)
	}
	b.release(p)
}

func TestWithoutServersItIsSaidOrTheWorkGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	network := b.proxy()
	network.Shut()
	c := b.configured(client.Config{Addrs: []string{network.Addr}, Patience: 300 * time.Millisecond})

	_, err := c.Acquire(t.Context(), "loader", client.Capacity(1))
	if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), network.Addr) {
		t.Errorf("got %v, want %v naming the server", err, client.ErrUnavailable)
	}

	p, err := c.Acquire(t.Context(), "loader", client.Capacity(1), client.WhenUnavailable(client.FailOpen))
	if err != nil {
		t.Fatalf("with FailOpen: %v", err)
	}
	if p.Guarded() || p.Token() != 0 || p.Slot() != -1 || p.Err() != nil {
		t.Errorf("got guarded %v, token %d, slot %d and %v; want a permit that guards nothing", p.Guarded(), p.Token(), p.Slot(), p.Err())
	}
	b.release(p)
	if !errors.Is(context.Cause(p.Context()), client.ErrReleased) {
		t.Errorf("context after release: got %v, want %v", context.Cause(p.Context()), client.ErrReleased)
	}
}

func TestServerThatComesBackWithinPatienceIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	network := b.proxy()
	network.Shut()
	asked := make(chan struct{})
	next := b.start(t.Context(), b.configured(client.Config{Addrs: []string{network.Addr}, Patience: trial.Patience}), "loader",
		client.Capacity(1), client.Announce(func(string) { close(asked) }))
	b.wait(asked, "the first attempt")

	network.Restore()

	p, err := b.answer(next)
	if err != nil {
		t.Fatal(err)
	}
	b.release(p)
}

func TestRefusedPasswordIsNotAnOutage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(binary, "127.0.0.1:0", t.TempDir(), "--password-file", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	b := &bench{T: t, node: n}
	b.release(b.acquire(b.configured(client.Config{Addrs: []string{n.Addr}, Password: "secret"}), "loader", client.Capacity(1)))

	_, err = b.configured(client.Config{Addrs: []string{b.node.Addr}, Password: "wrong", Patience: time.Hour}).Acquire(t.Context(), "loader",
		client.Capacity(1), client.WhenUnavailable(client.FailOpen))

	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != "WRONGPASS" {
		t.Errorf("got %v, want the server's refusal", err)
	}
}

// TestAbandonedRequestLeavesNothingBehind gives up on a request that was applied without an answer.
func TestAbandonedRequestLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.proxy(), b.proxy()
	c := b.client(one.Addr, two.Addr)
	b.do("SEM.CREATE", "loader", 1)
	b.release(b.acquire(c, "loader"))
	one.Deafen()
	ctx, cancel := context.WithCancel(t.Context())
	p := b.start(ctx, c, "loader", client.Lease(time.Hour))
	b.want("loader", "in_use", 1)
	one.Shut()
	two.Silence()
	cancel()
	two.Restore()

	if _, err := b.answer(p); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	b.want("loader", "in_use", 0)
}
