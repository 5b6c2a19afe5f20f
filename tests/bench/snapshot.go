package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// snapshotLeases is how many leases are live while snapshots are taken.
	snapshotLeases = 1_000_000
	leaseBatch     = 200
	// calmTime is how long clients are observed without a snapshot.
	calmTime = 2 * time.Second
)

// snapshot measures what clients of all nodes notice while a node, or all of them, writes a snapshot of
// a million leases. Only acquires that were under way meanwhile count.
func snapshot(ctx context.Context, b *bench) error {
	c, err := b.several(3, b.stores[0])
	if err != nil {
		return err
	}
	defer c.stop()
	if err := c.fill(ctx, b); err != nil {
		return err
	}
	var calms, leaders, followers, alls []latency
	for round := range b.rounds {
		leader, err := c.leader()
		if err != nil {
			return err
		}
		calm, err := c.watch(ctx, func() error { <-time.After(calmTime); return nil })
		byLeader, errLeader := c.watch(ctx, func() error { return write(c.nodes[leader]) })
		byFollower, errFollower := c.watch(ctx, func() error { return write(c.follower(leader)) })
		byAll, errAll := c.watch(ctx, func() error { return write(c.nodes...) })
		if err := errors.Join(err, errLeader, errFollower, errAll); err != nil {
			return err
		}
		b.progress("snapshot round %d: without %v; of the leader %v; of a follower %v; of all %v", round+1, calm, byLeader, byFollower, byAll)
		calms, leaders = append(calms, calm), append(leaders, byLeader)
		followers, alls = append(followers, byFollower), append(alls, byAll)
	}
	for _, s := range []struct {
		who     string
		figures []latency
	}{{"the leader writes", leaders}, {"a follower writes", followers}, {"all nodes write", alls}} {
		got := typical(s.figures)
		b.rows = append(b.rows, row{
			what:   fmt.Sprintf("three nodes: acquires while %s a snapshot of %d leases", s.who, snapshotLeases),
			figure: got.String(), against: "without: " + typical(calms).String(), target: "p99 <= 50 ms", passed: got.p99 <= 50,
		})
	}
	return nil
}

// fill makes leases that outlast the measurement, and lets the snapshots end that their log brings about.
func (c *several) fill(ctx context.Context, b *bench) error {
	leader, err := c.at(atLeader)
	if err != nil {
		return err
	}
	conn, err := resp.Dial(leader.address())
	if err != nil {
		return err
	}
	defer conn.Close()
	for key, capacity := range map[string]int{"many": snapshotLeases, "probe": connections} {
		if err := isText(conn.Do("SEM.CREATE", key, capacity)); err != nil {
			return fmt.Errorf("create %s: %w", key, err)
		}
	}
	b.progress("snapshot: making %d leases", snapshotLeases)
	for first := 0; first < snapshotLeases; first += leaseBatch {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := leases(conn, first); err != nil {
			return err
		}
	}
	return write(c.nodes...)
}

// leases makes a batch of them, in one pipeline.
func leases(conn *resp.Conn, first int) error {
	var out []byte
	for i := range leaseBatch {
		out = resp.Encode(out, "SEM.ACQUIRE", "many", "HOLDER", fmt.Sprint("h", first+i), "LEASE", time.Hour.Milliseconds())
	}
	if _, err := conn.Write(out); err != nil {
		return err
	}
	for range leaseBatch {
		if err := isGrant(conn.Receive(resp.Timeout)); err != nil {
			return err
		}
	}
	return nil
}

// watch returns what clients of all nodes notice of something.
func (c *several) watch(ctx context.Context, do func() error) (latency, error) {
	if err := ctx.Err(); err != nil {
		return latency{}, err
	}
	p := startProbes("probe", connections, c.addrs()...)
	<-time.After(calmTime / 4) // all are connected
	from := time.Now()
	failed := do()
	to := time.Now()
	taken, err := p.end()
	if err := errors.Join(failed, err); err != nil {
		return latency{}, err
	}
	return during(taken, from, to)
}

// write lets nodes write a snapshot, all at the same time, and waits for the last one.
func write(nodes ...*node.Node) error {
	failures := make([]error, len(nodes))
	var writing sync.WaitGroup
	for i, n := range nodes {
		writing.Go(func() {
			conn, err := resp.Dial(n.Addr)
			if err != nil {
				failures[i] = err
				return
			}
			defer conn.Close()
			if err := isText(conn.Do("SEM.NODE", "SNAPSHOT")); err != nil {
				failures[i] = fmt.Errorf("write a snapshot: %w", err)
			}
		})
	}
	writing.Wait()
	return errors.Join(failures...)
}

// isText tells a status or a text from a refusal.
func isText(reply any, err error) error {
	if err != nil {
		return err
	}
	switch reply := reply.(type) {
	case string, resp.Simple:
		return nil
	case resp.Error:
		return reply
	default:
		return fmt.Errorf("got %v, want a text", reply)
	}
}
