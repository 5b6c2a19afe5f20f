package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// redisCapacity is the largest capacity in Redis mode, and so the most acquires of one run.
	redisCapacity = 100_000
	// waitedOn is over how many semaphores waiters are spread, and waitedFor how long Redis is watched.
	waitedOn  = 100
	waitedFor = 5 * time.Second
)

// inRedis is a semserver in front of a Redis. The processor time that is measured is that of the Redis,
// which its other users have to share.
type inRedis struct {
	redis *redisServer
	node  *node.Node
}

func (b *bench) inRedis() (*inRedis, error) {
	r, err := b.startRedis("--appendonly", "no")
	if err != nil {
		return nil, err
	}
	n, err := node.Start(b.binary, "127.0.0.1:0", "", "--redis", "redis://"+r.addr)
	if err != nil {
		r.stop()
		return nil, err
	}
	return &inRedis{redis: r, node: n}, nil
}

func (s *inRedis) address() string { return s.node.Addr }

func (s *inRedis) pid() int { return s.redis.pid() }

func (s *inRedis) flags() []string { return nil }

func (s *inRedis) stop() {
	s.node.Kill()
	s.redis.stop()
}

// redisMode compares with the simplest script, sent straight to the same Redis; then it measures
// hand-overs, and what waiters cost that Redis.
func redisMode(ctx context.Context, b *bench) error {
	s, err := b.inRedis()
	if err != nil {
		return err
	}
	defer s.stop()
	for _, c := range []struct {
		depth   int
		acquire bool // releasing nothing
		target  float64
	}{{1, true, 1}, {16, true, 1.5}, {1, false, 0}, {16, false, 0}} {
		rows, err := b.besideScripts(ctx, s, c.depth, c.acquire, c.target)
		if err != nil {
			return err
		}
		b.rows = append(b.rows, rows...)
	}
	if err := b.handOversInRedis(ctx, s); err != nil {
		return err
	}
	return b.waitersInRedis(s)
}

// besideScripts has clients do the same through us and by scripts of their own, in turn.
func (b *bench) besideScripts(ctx context.Context, s *inRedis, depth int, acquire bool, target float64) ([]row, error) {
	requests := min(b.requests[depth], redisCapacity)
	flags := []string{"--capacity", fmt.Sprint(redisCapacity), "--clients", fmt.Sprint(connections),
		"--pipeline", fmt.Sprint(depth), "--requests", fmt.Sprint(requests)}
	what := fmt.Sprintf("Redis mode: acquire + release, P=%d", depth)
	if acquire {
		what = fmt.Sprintf("Redis mode: acquire, P=%d", depth)
		flags = append(flags, "--acquires-only")
	}
	var ours, theirs figures
	for round := range b.rounds {
		if err := errors.Join(b.duelist(ctx, &theirs, s.redis, flags, requests), b.duelist(ctx, &ours, s, flags, requests)); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		b.progress("%s, round %d: scripts %.0f/s, %.1f µs of Redis's processor time each; we %.0f/s, %.1f µs", what, round+1,
			theirs.rates[round], theirs.costs[round], ours.rates[round], ours.costs[round])
	}
	return versus(what, ours, theirs, target), nil
}

// duelist adds a run to the figures of a side.
func (b *bench) duelist(ctx context.Context, f *figures, s side, flags []string, requests int) error {
	before, err := cpuTime(s.pid())
	if err != nil {
		return err
	}
	got, err := b.semctlBench(ctx, s, flags...)
	if err != nil {
		return err
	}
	if got.Granted < int64(requests) {
		return fmt.Errorf("%d requests brought %d grants", requests, got.Granted)
	}
	after, err := cpuTime(s.pid())
	f.rates, f.costs = append(f.rates, got.PerSecond), append(f.costs, float64((after-before).Microseconds())/float64(requests))
	return err
}

// versus compares the figures of both sides. A target of 0 is none.
func versus(what string, ours, theirs figures, target float64) []row {
	ratio := medianRatio(ours.rates, theirs.rates)
	rate := row{
		what: what, figure: fmt.Sprintf("%.0f /s", median(ours.rates)),
		against: fmt.Sprintf("EVALSHA %.0f /s", median(theirs.rates)), ratio: fmt.Sprintf("%.2f", ratio),
	}
	if target > 0 {
		rate.target, rate.passed = fmt.Sprintf(">= %.1f", target), ratio >= target
	}
	return []row{rate, {
		what: "  processor time of Redis for each", figure: fmt.Sprintf("%.1f µs", median(ours.costs)),
		against: fmt.Sprintf("EVALSHA %.1f µs", median(theirs.costs)), ratio: fmt.Sprintf("%.2f", medianRatio(ours.costs, theirs.costs)),
	}}
}

// handOversInRedis measures those between two clients of one server; they have no target of their own.
func (b *bench) handOversInRedis(ctx context.Context, s *inRedis) error {
	holder, err := resp.Dial(s.address())
	if err != nil {
		return err
	}
	defer holder.Close()
	next, err := resp.Dial(s.address())
	if err != nil {
		return err
	}
	defer next.Close()
	if err := isText(holder.Do("SEM.CREATE", "pool", 1)); err != nil {
		return err
	}
	r, err := b.handOvers(ctx, "Redis mode", holder, next)
	r.target = ""
	b.rows = append(b.rows, r)
	return err
}

// waitersInRedis measures what a Redis has to do while clients merely wait.
func (b *bench) waitersInRedis(s *inRedis) error {
	conns, err := b.waitAll(s)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // nothing is to be read
		}
	}()
	if err != nil {
		return err
	}
	<-time.After(time.Second) // whatever there was to do for those who joined has been done
	var shares []float64
	for range b.rounds {
		before, err := cpuTime(s.pid())
		if err != nil {
			return err
		}
		began := time.Now()
		<-time.After(waitedFor)
		after, err := cpuTime(s.pid())
		if err != nil {
			return err
		}
		shares = append(shares, 100*float64(after-before)/float64(time.Since(began)))
		b.progress("Redis mode: %d waiters cost Redis %.2f %% of a processor", b.waiters, shares[len(shares)-1])
	}
	const most = 5
	b.rows = append(b.rows, row{
		what:   fmt.Sprintf("Redis mode: processor of Redis while %d clients wait on %d semaphores", b.waiters, waitedOn),
		figure: fmt.Sprintf("%.2f %%", median(shares)), target: fmt.Sprintf("<= %d %%", most), passed: median(shares) <= most,
	})
	return nil
}

// waitAll has clients wait until their connections are closed.
func (b *bench) waitAll(s *inRedis) (conns []*resp.Conn, err error) {
	look, err := resp.Dial(s.address())
	if err != nil {
		return nil, err
	}
	defer look.Close()
	for n := range waitedOn {
		if err := isGrant(look.Do("SEM.ACQUIRE", n, "HOLDER", "a", "CAPACITY", 1, "PERSIST")); err != nil {
			return nil, err
		}
	}
	for n := range b.waiters {
		conn, err := resp.Dial(s.address())
		if err != nil {
			return conns, err
		}
		conns = append(conns, conn)
		if err := conn.Send("SEM.ACQUIRE", n%waitedOn, "HOLDER", fmt.Sprint("w", n), "WAIT", 3_600_000); err != nil {
			return conns, err
		}
	}
	for n := range waitedOn {
		if err := waiting(look, fmt.Sprint(n), int64((b.waiters+waitedOn-1-n)/waitedOn)); err != nil {
			return conns, err
		}
	}
	return conns, nil
}
