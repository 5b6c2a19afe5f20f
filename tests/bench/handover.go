package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

// handoverSamples is how many hand-overs and plain acquires one round times.
const handoverSamples = 500

// handover compares the time from a release to the next waiter's grant with a plain acquire's.
func handover(ctx context.Context, b *bench) error {
	s, err := b.semserver(b.stores[0])
	if err != nil {
		return err
	}
	defer s.stop()
	holder := s.conn
	next, err := resp.Dial(s.address())
	if err != nil {
		return err
	}
	defer next.Close()
	if _, err := s.conn.Do("SEM.CREATE", "pool", 1); err != nil {
		return err
	}
	var handovers, plains []float64
	for round := range b.rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		var over, plain []float64
		for range handoverSamples {
			p, h, err := handOver(holder, next)
			if err != nil {
				return err
			}
			plain, over = append(plain, p.Seconds()), append(over, h.Seconds())
		}
		p, h := median(plain)*1e6, median(over)*1e6
		b.progress("handover round %d: acquire %.0f µs, hand-over %.0f µs", round+1, p, h)
		plains, handovers = append(plains, p), append(handovers, h)
	}
	ratio := medianRatio(handovers, plains)
	b.rows = append(b.rows, row{
		what:    "hand-over from a release to the next grant, p50",
		figure:  fmt.Sprintf("%.0f µs", median(handovers)),
		against: fmt.Sprintf("plain acquire %.0f µs", median(plains)),
		ratio:   fmt.Sprintf("%.2f", ratio),
		target:  "<= 1.3", passed: ratio <= 1.3,
	})
	return nil
}

// handOver times one plain acquire and one hand-over of its permit to a waiter.
func handOver(holder, next *resp.Conn) (plain, over time.Duration, err error) {
	began := time.Now()
	if err := isGrant(holder.Do("SEM.ACQUIRE", "pool", "HOLDER", "a")); err != nil {
		return 0, 0, err
	}
	plain = time.Since(began)

	if err := next.Send("SEM.ACQUIRE", "pool", "HOLDER", "b", "WAIT", 60000); err != nil {
		return 0, 0, err
	}
	if err := waiting(holder, "pool", 1); err != nil {
		return 0, 0, err
	}
	began = time.Now()
	if err := holder.Send("SEM.RELEASE", "pool", "a"); err != nil {
		return 0, 0, err
	}
	if err := isGrant(next.Receive(resp.Timeout)); err != nil {
		return 0, 0, err
	}
	over = time.Since(began)
	if _, err := holder.Receive(resp.Timeout); err != nil {
		return 0, 0, err
	}
	_, err = next.Do("SEM.RELEASE", "pool", "b")
	return plain, over, err
}

func isGrant(reply any, err error) error {
	if err != nil {
		return err
	}
	if parts, ok := reply.([]any); !ok || len(parts) != 5 {
		return fmt.Errorf("acquire got %v, want a grant", reply)
	}
	return nil
}

// waiting waits until n clients stand in line.
func waiting(conn *resp.Conn, key string, n int64) error {
	for deadline := time.Now().Add(resp.Timeout); time.Now().Before(deadline); {
		fields, err := info(conn, key)
		if err != nil {
			return err
		}
		if fields["waiters"] == n {
			return nil
		}
	}
	return fmt.Errorf("%d clients did not join the line within %v", n, resp.Timeout)
}
