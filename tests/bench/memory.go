package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

// memory measures what a waiting connection costs.
func memory(ctx context.Context, b *bench) error {
	var each []int64
	for round := range b.rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := b.waiterBytes()
		if err != nil {
			return err
		}
		b.progress("memory round %d: %.1f KiB for each of %d waiters", round+1, float64(n)/1024, b.waiters)
		each = append(each, n)
	}
	const most = 30 << 10
	b.rows = append(b.rows, row{
		what:    fmt.Sprintf("resident memory of one of %d waiting connections", b.waiters),
		figure:  fmt.Sprintf("%.1f KiB", float64(median(each))/1024),
		against: "", ratio: "", target: "<= 30 KiB", passed: median(each) <= most,
	})
	return nil
}

// waiterBytes starts a node, lets clients wait, and returns by how much it has grown for each.
func (b *bench) waiterBytes() (int64, error) {
	s, err := b.semserver(b.stores[0])
	if err != nil {
		return 0, err
	}
	defer s.stop()
	if _, err := s.conn.Do("SEM.CREATE", "pool", 1); err != nil {
		return 0, err
	}
	if err := isGrant(s.conn.Do("SEM.ACQUIRE", "pool", "HOLDER", "a", "PERSIST")); err != nil {
		return 0, err
	}
	before, err := s.node.Resident()
	if err != nil {
		return 0, err
	}
	for i := range b.waiters {
		conn, err := resp.Dial(s.address())
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		if err := conn.Send("SEM.ACQUIRE", "pool", "HOLDER", fmt.Sprintf("holder-%08d", i), "WAIT", 3600000); err != nil {
			return 0, err
		}
	}
	if err := waiting(s.conn, "pool", int64(b.waiters)); err != nil {
		return 0, err
	}
	<-time.After(time.Second) // whatever was needed only to join is let go of
	after, err := s.node.Resident()
	return (after - before) / int64(b.waiters), err
}
