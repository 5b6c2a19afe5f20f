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
	next, err := resp.Dial(s.address())
	if err != nil {
		return err
	}
	defer next.Close()
	if err := isText(s.conn.Do("SEM.CREATE", "pool", 1)); err != nil {
		return err
	}
	r, err := b.handOvers(ctx, "one node", s.conn, next)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, r)
	return nil
}

// handOvers measures those of a holder to another client in line. They are compared with plain acquires
// of the holder and of the other, whichever are slower.
func (b *bench) handOvers(ctx context.Context, where string, holder, next *resp.Conn) (row, error) {
	var overs, plains []float64
	for round := range b.rounds {
		if err := ctx.Err(); err != nil {
			return row{}, err
		}
		var over, near, far []float64
		for range handoverSamples {
			t, err := handOver(holder, next)
			if err != nil {
				return row{}, err
			}
			over, near, far = append(over, t.over.Seconds()), append(near, t.holder.Seconds()), append(far, t.next.Seconds())
		}
		p, o := max(median(near), median(far))*1e6, median(over)*1e6
		b.progress("handover, %s, round %d: acquire %.0f µs, hand-over %.0f µs", where, round+1, p, o)
		plains, overs = append(plains, p), append(overs, o)
	}
	ratio := medianRatio(overs, plains)
	return row{
		what:    fmt.Sprintf("hand-over from a release to the next grant, p50, %s", where),
		figure:  fmt.Sprintf("%.0f µs", median(overs)),
		against: fmt.Sprintf("plain acquire %.0f µs", median(plains)),
		ratio:   fmt.Sprintf("%.2f", ratio),
		target:  "<= 1.3", passed: ratio <= 1.3,
	}, nil
}

// times is how long a plain acquire of each client took, and a hand-over from one to the other.
type times struct{ holder, next, over time.Duration }

// handOver times one plain acquire of each client, and one hand-over of the permit.
func handOver(holder, next *resp.Conn) (t times, err error) {
	if t.next, err = plain(next, "b"); err != nil {
		return t, err
	}
	if err := released(next.Do("SEM.RELEASE", "pool", "b")); err != nil {
		return t, err
	}
	if t.holder, err = plain(holder, "a"); err != nil {
		return t, err
	}
	if err := next.Send("SEM.ACQUIRE", "pool", "HOLDER", "b", "WAIT", 60000); err != nil {
		return t, err
	}
	if err := waiting(holder, "pool", 1); err != nil {
		return t, err
	}
	began := time.Now()
	if err := holder.Send("SEM.RELEASE", "pool", "a"); err != nil {
		return t, err
	}
	if err := isGrant(next.Receive(resp.Timeout)); err != nil {
		return t, err
	}
	t.over = time.Since(began)
	if err := released(holder.Receive(resp.Timeout)); err != nil {
		return t, err
	}
	return t, released(next.Do("SEM.RELEASE", "pool", "b"))
}

// plain times an acquire of a free permit.
func plain(conn *resp.Conn, holder string) (time.Duration, error) {
	began := time.Now()
	err := isGrant(conn.Do("SEM.ACQUIRE", "pool", "HOLDER", holder))
	return time.Since(began), err
}

func released(reply any, err error) error {
	if err == nil && reply != int64(1) {
		return fmt.Errorf("release got %v, want 1", reply)
	}
	return err
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
