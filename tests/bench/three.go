package main

import (
	"context"
	"errors"
	"fmt"
)

// three measures three nodes: pairs of acquire and release against locks of an etcd, deep pipelines
// against a Redis that keeps nothing. The first log store is measured with clients at every place.
func three(ctx context.Context, b *bench) error {
	redis, err := b.startRedis("--appendonly", "no")
	if err != nil {
		return err
	}
	defer redis.stop()
	var locks *etcdCluster
	if b.etcd {
		if locks, err = b.startEtcd(3); err != nil {
			return err
		}
		defer locks.stop()
	}
	for i, store := range b.stores {
		places := []place{atLeader, atFollower, atAll}
		if i > 0 {
			places = places[:1]
		}
		if err := b.threeNodes(ctx, store, places, redis, locks); err != nil {
			return err
		}
	}
	return nil
}

// threeNodes measures one log store. Without an etcd the pairs are compared with nothing.
func (b *bench) threeNodes(ctx context.Context, store string, places []place, redis side, locks *etcdCluster) error {
	c, err := b.several(3, store)
	if err != nil {
		return err
	}
	defer c.stop()
	for _, p := range places {
		var pairs, deep duel
		for round := range b.rounds {
			if err := errors.Join(pairs.pairs(ctx, c, p, locks), deep.deep(ctx, c, p, redis)); err != nil {
				return err
			}
			b.progress("three nodes, %s, clients at %s, round %d: %s, %s", store, p, round+1, pairs.latest("pairs"), deep.latest("acquires"))
		}
		what := fmt.Sprintf("three nodes, %s, clients at %s: ", store, p)
		counts := store == b.stores[0] && p == atLeader
		b.rows = append(b.rows, pairs.rows(what+"acquire + release, P=1", "etcd lock + unlock", 8, counts)...)
		b.rows = append(b.rows, deep.rows(what+"acquire, P=16", "redis memory", 1.5, counts)...)
	}
	return nil
}

// duel is what the rounds of one comparison brought.
type duel struct {
	ours, theirs       []float64 // per second; theirs is empty without an adversary
	leading, following []float64 // processor time of such a node for each, in microseconds
}

// pairs adds a round of acquire and release, one request of a client at a time.
func (d *duel) pairs(ctx context.Context, c *several, p place, locks *etcdCluster) error {
	err := d.load(ctx, c, p, c.b.requests[1])
	if err != nil || locks == nil {
		return err
	}
	rate, err := locks.load(ctx, p)
	d.theirs = append(d.theirs, rate)
	return err
}

// deep adds a round of acquires, sixteen in a pipeline.
func (d *duel) deep(ctx context.Context, c *several, p place, redis side) error {
	if err := d.load(ctx, c, p, c.b.requests[16], "--acquires-only", "--pipeline", "16"); err != nil {
		return err
	}
	rate, _, err := c.b.load(ctx, redis, 16, c.b.requests[16])
	d.theirs = append(d.theirs, rate)
	return err
}

// load puts a load on our nodes, and notes how fast it went and what it cost them.
func (d *duel) load(ctx context.Context, c *several, p place, requests int, flags ...string) error {
	s, err := c.at(p)
	if err != nil {
		return err
	}
	leader, err := c.leader()
	if err != nil {
		return err
	}
	leading, following, err := c.cpuTimes(leader)
	if err != nil {
		return err
	}
	got, err := c.b.semctlBench(ctx, s, append(flags, "--clients", fmt.Sprint(connections), "--requests", fmt.Sprint(requests))...)
	if err != nil {
		return err
	}
	if got.Granted < int64(requests) {
		return fmt.Errorf("%d requests brought %d grants", requests, got.Granted)
	}
	leadingAfter, followingAfter, err := c.cpuTimes(leader)
	d.ours = append(d.ours, got.PerSecond)
	d.leading = append(d.leading, float64((leadingAfter-leading).Microseconds())/float64(requests))
	d.following = append(d.following, float64((followingAfter-following).Microseconds())/float64(requests))
	return err
}

// latest tells of the last round.
func (d *duel) latest(unit string) string {
	text := fmt.Sprintf("%.0f %s/s", d.ours[len(d.ours)-1], unit)
	if len(d.theirs) == 0 {
		return text
	}
	return fmt.Sprintf("%s (against %.0f)", text, d.theirs[len(d.theirs)-1])
}

// rows compares the rates with the target, if it counts, and tells what each request cost.
func (d *duel) rows(what, against string, target float64, counts bool) []row {
	rate := row{what: what, figure: fmt.Sprintf("%.0f /s", median(d.ours))}
	if len(d.theirs) > 0 {
		ratio := medianRatio(d.ours, d.theirs)
		rate.against, rate.ratio = fmt.Sprintf("%s %.0f /s", against, median(d.theirs)), fmt.Sprintf("%.2f", ratio)
		if counts {
			rate.target, rate.passed = fmt.Sprintf(">= %.1f", target), ratio >= target
		}
	}
	return []row{rate, {
		what:   "  processor time of the leader for each",
		figure: fmt.Sprintf("%.1f µs", median(d.leading)), against: fmt.Sprintf("a follower %.1f µs", median(d.following)),
	}}
}
