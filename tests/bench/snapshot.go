package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/semserver/semserver/tests/internal/resp"
)

// snapshotLeases is how many leases are live while snapshots are taken.
const snapshotLeases = 1_000_000

// snapshot measures what clients notice while every node writes a snapshot of a million leases.
func snapshot(ctx context.Context, b *bench) error {
	c, err := b.several(3, b.stores[0])
	if err != nil {
		return err
	}
	defer c.stop()
	leader, err := c.at(atLeader)
	if err != nil {
		return err
	}
	conn, err := resp.Dial(leader.address())
	if err != nil {
		return err
	}
	defer conn.Close()
	b.progress("snapshot: making %d leases", snapshotLeases)
	if err := lease(conn, snapshotLeases); err != nil {
		return err
	}
	var calms, busies []float64
	for round := range b.rounds {
		calm, err := b.latencies(ctx, leader)
		if err != nil {
			return err
		}
		writing := make(chan error, 1)
		go func() { writing <- c.snapshots() }()
		busy, err := b.latencies(ctx, leader)
		if err := errors.Join(err, <-writing); err != nil {
			return err
		}
		b.progress("snapshot round %d: p99 %.1f ms, without %.1f ms", round+1, busy, calm)
		calms, busies = append(calms, calm), append(busies, busy)
	}
	b.rows = append(b.rows, row{
		what:   "p99 of acquires while three nodes write snapshots of 1,000,000 leases",
		figure: fmt.Sprintf("%.1f ms", median(busies)), against: fmt.Sprintf("without %.1f ms", median(calms)),
		target: "<= 50 ms", passed: median(busies) <= 50,
	})
	return nil
}

// lease makes leases that outlast the measurement.
func lease(conn *resp.Conn, count int) error {
	const batch = 200
	if _, err := conn.Do("SEM.CREATE", "many", count); err != nil {
		return err
	}
	for from := 0; from < count; from += batch {
		for i := range batch {
			if err := conn.Send("SEM.ACQUIRE", "many", "HOLDER", fmt.Sprint("h", from+i), "LEASE", 3_600_000); err != nil {
				return err
			}
		}
		for range batch {
			if err := isGrant(conn.Receive(resp.Timeout)); err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshots makes every node write one, the leader first.
func (c *several) snapshots() error {
	for _, n := range c.nodes {
		conn, err := resp.Dial(n.Addr)
		if err != nil {
			return err
		}
		_, err = conn.Do("SEM.NODE", "SNAPSHOT")
		if err := errors.Join(err, conn.Close()); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	return nil
}

// latencies returns the p99 of acquires, in milliseconds.
func (b *bench) latencies(ctx context.Context, s side) (float64, error) {
	got, err := b.semctlBench(ctx, s, "--clients", fmt.Sprint(connections), "--for", "6s")
	return float64(got.Acquire.P99) / 1e3, err
}
