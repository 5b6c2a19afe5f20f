package chaos

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/chaos/internal/fleet"
	"github.com/semserver/semserver/tests/internal/resp"
)

// What was acknowledged at any node is there when all of them come back.
func TestEverythingOutlivesTheDeathOfAllNodes(t *testing.T) {
	t.Parallel()
	f := open(t, 3)
	const holders, lease = 30, 2 * time.Minute
	dial(t, f.Addr(1)).want("OK", "SEM.CREATE", "hall", holders)
	type promise struct {
		grant
		since time.Time
	}
	var kept, ended []promise
	for i := range holders {
		c := dial(t, f.Addr(1+i%3))
		p := promise{since: time.Now()}
		p.grant = c.acquire("hall", "HOLDER", fmt.Sprint("h", i), "LEASE", lease.Milliseconds())
		if i%3 == 2 {
			c.want(1, "SEM.RELEASE", "hall", p.holder)
			ended = append(ended, p)
			continue
		}
		kept = append(kept, p)
	}

	for i := 1; i <= 3; i++ {
		f.Kill(i)
	}
	for i := 1; i <= 3; i++ {
		must(t, f.Start(i))
	}
	leader(t, f)

	for i, p := range kept {
		must(t, f.Ready(1+i%3))
		c := dial(t, f.Addr(1+i%3))
		c.want(1, "SEM.CHECK", "hall", p.holder, p.token)
		got := c.acquire("hall", "HOLDER", p.holder)
		if got.token != p.token || got.slot != p.slot || !got.replayed {
			t.Errorf("got %+v, want %+v again", got, p.grant)
		}
		// A hundredth for the rate of clocks, a millisecond for rounding.
		if least := lease - lease/100 - time.Since(p.since) - time.Millisecond; got.left < least || got.left > lease {
			t.Errorf("%s: %v of the lease are left, want %v to %v", p.holder, got.left, least, lease)
		}
	}
	c := dial(t, f.Addr(1))
	for _, p := range ended {
		c.want(0, "SEM.CHECK", "hall", p.holder, p.token)
	}
	if got := c.info("hall"); got["in_use"] != int64(len(kept)) || got["last_token"] < ended[len(ended)-1].token {
		t.Errorf("got %v, want %d in use and a last token of at least %d", got, len(kept), ended[len(ended)-1].token)
	}
	if last := c.acquire("hall", "HOLDER", "after"); last.token <= ended[len(ended)-1].token {
		t.Errorf("token after the restart: got %d, want more than %d", last.token, ended[len(ended)-1].token)
	}
}

// A client with one retry, at another node, notices nothing of a restart of one node after another.
func TestARollingRestartFailsNoRequestTwice(t *testing.T) {
	t.Parallel()
	f := open(t, 3)
	dial(t, f.Addr(1)).want("OK", "SEM.CREATE", "hall", 100)
	ctx, finish := context.WithCancel(context.Background())
	var work sync.WaitGroup
	var asked, retried atomic.Int64
	for i := range 6 {
		r := &retrier{addrs: f.Addrs(), node: i % 3, asked: &asked, retried: &retried}
		work.Go(func() {
			if err := r.work(ctx, fmt.Sprint("w", i)); err != nil {
				t.Error(err)
			}
		})
	}

	for i := 1; i <= 3; i++ {
		must(t, f.Stop(i))
		must(t, f.Start(i))
		must(t, f.Ready(i))
		dial(t, f.Addr(i)).acquire("hall", "HOLDER", fmt.Sprint("back", i))
		// Everybody is at work again before the next node goes.
		enough := asked.Load() + 50
		trial.Await(t, func() error {
			if got := asked.Load(); got < enough && !t.Failed() {
				return fmt.Errorf("%d requests, want %d", got, enough)
			}
			return nil
		})
	}

	finish()
	work.Wait()
	t.Logf("%d requests, %d of them repeated", asked.Load(), retried.Load())
}

// retrier is a client that repeats a request once, at the next node.
type retrier struct {
	addrs          []string
	node           int
	conn           *resp.Conn
	asked, retried *atomic.Int64
}

func (r *retrier) work(ctx context.Context, name string) error {
	defer r.hangUp()
	for n := 0; ctx.Err() == nil; n++ {
		holder := fmt.Sprint(name, ".", n)
		reply, err := r.ask("SEM.ACQUIRE", "hall", "HOLDER", holder, "WAIT", 5000)
		if err != nil {
			return err
		}
		g, err := asGrant(reply)
		if err != nil {
			return err
		}
		if reply, err = r.ask("SEM.RENEW", "hall", holder, "LEASE", 20_000, "TOKEN", g.token); err != nil || reply != int64(20_000) {
			return fmt.Errorf("renew: got %v, %w, want the lease", reply, err)
		}
		if reply, err = r.ask("SEM.RELEASE", "hall", holder, "TOKEN", g.token); err != nil || reply != int64(1) && reply != int64(0) {
			return fmt.Errorf("release: got %v, %w, want 1, or 0 for a repeat", reply, err)
		}
	}
	return nil
}

// ask sends a request, and once more if it fails.
func (r *retrier) ask(args ...any) (any, error) {
	r.asked.Add(1)
	reply, first := r.once(args...)
	if first == nil {
		return reply, nil
	}
	r.retried.Add(1)
	r.hangUp()
	r.node = (r.node + 1) % len(r.addrs)
	reply, err := r.once(args...)
	if err != nil {
		return nil, fmt.Errorf("%v: failed twice: %w, then, at node %d, %w", args, first, r.node+1, err)
	}
	return reply, nil
}

func (r *retrier) once(args ...any) (any, error) {
	if r.conn == nil {
		conn, err := resp.Dial(r.addrs[r.node])
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	reply, err := r.conn.Do(args...)
	if refused, ok := reply.(resp.Error); ok && err == nil {
		return nil, refused
	}
	return reply, err
}

func (r *retrier) hangUp() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// Two of five nodes are not missed.
func TestFiveNodesDoWithoutTwo(t *testing.T) {
	t.Parallel()
	f := open(t, 5)
	first := leader(t, f)
	c := dial(t, f.Addr(others(f, first)[3]))
	c.want("OK", "SEM.CREATE", "door", 2)
	a := c.acquire("door", "HOLDER", "a", "LEASE", 60_000)
	f.Kill(first)
	f.Kill(others(f, first)[0])
	b := c.acquire("door", "HOLDER", "b", "LEASE", 60_000)
	if b.token <= a.token || b.slot == a.slot {
		t.Errorf("got %+v after %+v, want a larger token and another slot", b, a)
	}
	c.want(1, "SEM.CHECK", "door", "a", a.token)
	returned(t, f, first, others(f, first)[0])
	dial(t, f.Addr(first)).want(1, "SEM.CHECK", "door", "b", b.token)
}

func returned(t *testing.T, f *fleet.Fleet, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		must(t, f.Start(i))
	}
	for _, i := range nodes {
		must(t, f.Ready(i))
	}
}
