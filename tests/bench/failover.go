package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

// failovers is how often the leader is killed.
const failovers = 20

// failover measures how long after the death of the leader a client gets its next permit at a survivor.
func failover(ctx context.Context, b *bench) error {
	c, err := b.several(3, b.stores[0])
	if err != nil {
		return err
	}
	defer c.stop()
	var gaps []float64
	for round := range failovers {
		if err := ctx.Err(); err != nil {
			return err
		}
		gap, err := c.killLeader(round)
		if err != nil {
			return err
		}
		b.progress("failover round %d: %.0f ms", round+1, gap*1e3)
		gaps = append(gaps, gap)
	}
	slices.Sort(gaps)
	p95 := gaps[(len(gaps)*95+99)/100-1]
	b.rows = append(b.rows, row{
		what:   "leader killed: time to the next grant at a survivor, p95",
		figure: fmt.Sprintf("%.0f ms", p95*1e3), against: fmt.Sprintf("p50 %.0f ms, worst of %d %.0f ms", median(gaps)*1e3, failovers, gaps[failovers-1]*1e3),
		target: "<= 1000 ms", passed: p95 <= 1,
	})
	return nil
}

// killLeader kills it, waits for a grant at another node, and starts it again.
func (c *several) killLeader(round int) (seconds float64, err error) {
	leader, err := c.leader()
	if err != nil {
		return 0, err
	}
	conn, err := resp.Dial(c.nodes[(leader+1)%len(c.nodes)].Addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := isGrant(conn.Do("SEM.ACQUIRE", "door", "HOLDER", fmt.Sprint("before", round), "CAPACITY", 1000)); err != nil {
		return 0, err
	}
	c.nodes[leader].Kill()
	began := time.Now()
	for try := 0; ; try++ {
		err := isGrant(conn.Do("SEM.ACQUIRE", "door", "HOLDER", fmt.Sprint("after", round)))
		if err == nil {
			break
		}
		if time.Since(began) > resp.Timeout {
			return 0, errors.Join(errors.New("no grant"), err)
		}
	}
	return time.Since(began).Seconds(), c.start(leader)
}
