package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// expiryWindow is how long others are observed from the instant at which all leases end.
	expiryWindow = 500 * time.Millisecond
	expiryProbes = 4
	expiryBatch  = 200
)

// expiry measures what clients of other semaphores notice when very many leases end at once: those of
// one semaphore, and one each of as many semaphores.
func expiry(ctx context.Context, b *bench) error {
	s, err := b.semserver(b.stores[0])
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := s.conn.Do("SEM.CREATE", "probe", 1<<31); err != nil {
		return err
	}
	for _, c := range []struct {
		what string
		key  func(run string, i int) string
	}{
		{"one semaphore", func(run string, _ int) string { return run }},
		{"a semaphore each", func(run string, i int) string { return fmt.Sprint(run, i) }},
	} {
		var p99s, calms []float64
		for round := range b.rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			run := fmt.Sprint(c.what, round, "-")
			calm, p99, err := b.expireTogether(s, func(i int) string { return c.key(run, i) })
			if err != nil {
				return err
			}
			b.progress("expiry, %s, round %d: p99 %.1f ms, before it %.1f ms", c.what, round+1, p99, calm)
			p99s, calms = append(p99s, p99), append(calms, calm)
		}
		b.rows = append(b.rows, row{
			what:    fmt.Sprintf("p99 of other acquires while %d leases end, %s", b.leases, c.what),
			figure:  fmt.Sprintf("%.1f ms", median(p99s)),
			against: fmt.Sprintf("before it %.1f ms", median(calms)),
			ratio:   "", target: "<= 20 ms", passed: median(p99s) <= 20,
		})
	}
	return nil
}

// expireTogether takes leases that all end in one instant and returns the p99, in milliseconds, of
// acquires on another semaphore in the window before that instant and in the one after it.
func (b *bench) expireTogether(s *semserver, key func(i int) string) (calm, p99 float64, err error) {
	end := time.Now().Add(2*time.Second + time.Duration(b.leases)*40*time.Microsecond)
	if err := b.takeLeases(s, key, end); err != nil {
		return 0, 0, err
	}
	if slack := time.Until(end) - expiryWindow; slack < 0 {
		return 0, 0, fmt.Errorf("taking %d leases took %v too long; try fewer", b.leases, -slack)
	}
	<-time.After(time.Until(end) - expiryWindow)
	before, err := probe(s, end)
	if err != nil {
		return 0, 0, err
	}
	after, err := probe(s, end.Add(expiryWindow))
	if err != nil {
		return 0, 0, err
	}
	fields, err := info(s.conn, key(b.leases-1))
	if err == nil && fields["in_use"] != 0 {
		err = fmt.Errorf("%d permits are in use after their leases have ended", fields["in_use"])
	}
	if err != nil {
		return 0, 0, err
	}
	return before, after, b.clear(s, key)
}

// takeLeases acquires in pipelines; each request names what is left until the end.
func (b *bench) takeLeases(s *semserver, key func(i int) string, end time.Time) error {
	return b.pipelines(s, func(i int) []any {
		return []any{"SEM.ACQUIRE", key(i), "HOLDER", i, "LEASE", max(1, time.Until(end).Milliseconds()), "CAPACITY", 1 << 31}
	}, isGrant)
}

// clear deletes what takeLeases made.
func (b *bench) clear(s *semserver, key func(i int) string) error {
	return b.pipelines(s, func(i int) []any { return []any{"SEM.DELETE", key(i), "FORCE"} },
		func(_ any, err error) error { return err })
}

func (b *bench) pipelines(s *semserver, command func(i int) []any, check func(any, error) error) error {
	for first := 0; first < b.leases; first += expiryBatch {
		var out []byte
		last := min(first+expiryBatch, b.leases)
		for i := first; i < last; i++ {
			out = resp.Encode(out, command(i)...)
		}
		if _, err := s.conn.Write(out); err != nil {
			return err
		}
		for range last - first {
			if err := check(s.conn.Receive(resp.Timeout)); err != nil {
				return err
			}
		}
	}
	return nil
}

// probe acquires and releases on a semaphore of its own until then, over several connections, and
// returns the p99 of an acquire in milliseconds.
func probe(s *semserver, until time.Time) (float64, error) {
	began := time.Now()
	p := startProbes("probe", expiryProbes, s.address())
	<-time.After(time.Until(until))
	taken, err := p.end()
	if err != nil {
		return 0, err
	}
	got, err := during(taken, began, until)
	return got.p99, err
}
