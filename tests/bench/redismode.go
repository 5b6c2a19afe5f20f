package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// redisCapacity is the largest capacity of a semaphore in Redis mode.
const redisCapacity = 100_000

// redisMode compares acquires through a semserver, whose permits are in a Redis, with a script sent
// straight to that same Redis.
func redisMode(ctx context.Context, b *bench) (err error) {
	redis, err := b.startRedis("--appendonly", "no")
	if err != nil {
		return err
	}
	defer redis.stop()
	ours, err := b.inFrontOf(redis)
	if err != nil {
		return err
	}
	defer ours.stop()
	for _, c := range []struct {
		depth  int
		target float64
	}{{1, 1}, {16, 1.5}} {
		if err := b.besides(ctx, ours, redis, c.depth, c.target); err != nil {
			return err
		}
	}
	return nil
}

// inFrontOf starts a semserver that keeps its semaphores in a Redis.
func (b *bench) inFrontOf(redis *redisServer) (*semserver, error) {
	n, err := node.Start(b.binary, "127.0.0.1:0", "", "--redis", "redis://"+redis.addr)
	if err != nil {
		return nil, err
	}
	conn, err := resp.Dial(n.Addr)
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return &semserver{node: n, conn: conn}, nil
}

// besides measures both in turn.
func (b *bench) besides(ctx context.Context, ours *semserver, redis *redisServer, depth int, target float64) error {
	var through, straight figures
	for round := range b.rounds {
		for _, m := range []struct {
			side side
			to   *figures
		}{{redis, &straight}, {ours, &through}} {
			requests := min(b.requests[depth], redisCapacity)
			rate, cost, err := b.load(ctx, m.side, depth, requests, "--capacity", fmt.Sprint(redisCapacity))
			if err != nil {
				return fmt.Errorf("redis mode, P=%d: %w", depth, err)
			}
			m.to.rates, m.to.costs = append(m.to.rates, rate), append(m.to.costs, cost)
		}
		b.progress("redis mode P=%d round %d: %.0f req/s through semserver, %.0f req/s straight to Redis",
			depth, round+1, through.rates[round], straight.rates[round])
	}
	ratio := medianRatio(through.rates, straight.rates)
	b.rows = append(b.rows, row{
		what:    fmt.Sprintf("acquire in Redis mode, %d connections, P=%d", connections, depth),
		figure:  fmt.Sprintf("%.0f req/s", median(through.rates)),
		against: fmt.Sprintf("straight to that Redis %.0f req/s", median(straight.rates)),
		ratio:   fmt.Sprintf("%.2f", ratio),
		target:  fmt.Sprintf(">= %.1f", target),
		passed:  ratio >= target,
	})
	return nil
}
