package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	connections = 50
	// loadTimeout is the longest that one run may take.
	loadTimeout = 5 * time.Minute
)

// side is a server under load.
type side interface {
	address() string
	pid() int
	// flags are what semctl bench has to know of it.
	flags() []string
	stop()
}

// semserver is our side.
type semserver struct {
	node *node.Node
	conn *resp.Conn
}

func (b *bench) semserver(store string) (*semserver, error) {
	n, err := b.start("--log-store", store)
	if err != nil {
		return nil, err
	}
	conn, err := resp.Dial(n.Addr)
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return &semserver{node: n, conn: conn}, nil
}

func (s *semserver) address() string { return s.node.Addr }

func (s *semserver) pid() int { return s.node.Process.Pid }

func (s *semserver) flags() []string { return nil }

func (s *semserver) stop() {
	_ = s.conn.Close() // nothing is left to be read
	s.node.Kill()
}

// info is SEM.INFO.
func info(conn *resp.Conn, key string) (map[string]int64, error) {
	reply, err := conn.Do("SEM.INFO", key)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", key, err)
	}
	flat, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("look at %s: %v", key, reply)
	}
	fields := map[string]int64{}
	for i := 0; i+1 < len(flat); i += 2 {
		if n, isNumber := flat[i+1].(int64); isNumber {
			fields[fmt.Sprint(flat[i])] = n
		}
	}
	return fields, nil
}

// throughput compares acquires per second: with a Redis that fsyncs every write where each client
// waits for its reply, with one that writes nothing where sixteen requests travel together.
func throughput(ctx context.Context, b *bench) error {
	sides := map[string]side{}
	defer func() {
		for _, s := range sides {
			s.stop()
		}
	}()
	for name, flags := range map[string][]string{
		"fsync": {"--appendonly", "yes", "--appendfsync", "always"}, "memory": {"--appendonly", "no"},
	} {
		r, err := b.startRedis(flags...)
		if err != nil {
			return err
		}
		sides[name] = r
	}
	for _, store := range b.stores {
		s, err := b.semserver(store)
		if err != nil {
			return err
		}
		sides[store] = s
	}
	for _, c := range []struct {
		depth   int
		against string
		target  float64
	}{{1, "fsync", 1.3}, {16, "memory", 3}} {
		if err := b.compare(ctx, sides, c.depth, c.against, c.target); err != nil {
			return err
		}
	}
	return nil
}

// figures are what the rounds of one side brought.
type figures struct {
	rates []float64 // requests per second
	costs []float64 // processor time of the server for each request, in microseconds
}

// compare measures all log stores and the Redis in turn.
func (b *bench) compare(ctx context.Context, sides map[string]side, depth int, against string, target float64) error {
	found := map[string]*figures{}
	for round := range b.rounds {
		for _, name := range append([]string{against}, b.stores...) {
			rate, cost, err := b.load(ctx, sides[name], depth, b.requests[depth])
			if err != nil {
				return fmt.Errorf("%s, P=%d: %w", name, depth, err)
			}
			b.progress("throughput P=%d round %d: %s %.0f req/s, %.1f µs of processor time each", depth, round+1, name, rate, cost)
			f := found[name]
			if f == nil {
				f = &figures{}
				found[name] = f
			}
			f.rates, f.costs = append(f.rates, rate), append(f.costs, cost)
		}
	}
	theirs := found[against]
	for i, store := range b.stores {
		ours := found[store]
		ratio := medianRatio(ours.rates, theirs.rates)
		r := row{
			what:    fmt.Sprintf("acquire, %d connections, P=%d, %s", connections, depth, store),
			figure:  fmt.Sprintf("%.0f req/s", median(ours.rates)),
			against: fmt.Sprintf("redis %s %.0f req/s", against, median(theirs.rates)),
			ratio:   fmt.Sprintf("%.2f", ratio),
		}
		if i == 0 {
			r.target, r.passed = fmt.Sprintf(">= %.1f", target), ratio >= target
		}
		b.rows = append(b.rows, r, row{
			what:    "  processor time of the server for each",
			figure:  fmt.Sprintf("%.1f µs", median(ours.costs)),
			against: fmt.Sprintf("redis %s %.1f µs", against, median(theirs.costs)),
			ratio:   fmt.Sprintf("%.2f", medianRatio(ours.costs, theirs.costs)),
		})
	}
	return nil
}

// medianRatio is the median of the ratios of each round, whose two sides ran one after the other and
// shared whatever else the machine was doing.
func medianRatio(ours, theirs []float64) float64 {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / theirs[i]
	}
	return median(ratios)
}

// load puts acquires on a server, each with a holder of its own, and returns how many it granted in a
// second and its processor time for each, in microseconds. That includes what it takes to make the
// semaphore and to remove it again.
func (b *bench) load(ctx context.Context, s side, depth, requests int) (perSecond, cost float64, err error) {
	before, err := cpuTime(s.pid())
	if err != nil {
		return 0, 0, err
	}
	got, err := b.semctlBench(ctx, s, "--acquires-only", "--clients", fmt.Sprint(connections),
		"--pipeline", fmt.Sprint(depth), "--requests", fmt.Sprint(requests))
	if err != nil {
		return 0, 0, err
	}
	after, err := cpuTime(s.pid())
	if err != nil {
		return 0, 0, err
	}
	if got.Granted < int64(requests) {
		return 0, 0, fmt.Errorf("%d requests brought %d grants", requests, got.Granted)
	}
	return got.PerSecond, float64((after - before).Microseconds()) / float64(requests), nil
}

// measured is what semctl bench prints, as far as it is used here.
type measured struct {
	Granted   int64
	PerSecond float64 `json:"per_second"`
	Acquire   struct {
		P99 int64 `json:"p99_us"`
	}
}

// semctlBench runs semctl bench against a server.
func (b *bench) semctlBench(ctx context.Context, s side, flags ...string) (measured, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	args := append([]string{"bench", "--json", "--addr", s.address()}, s.flags()...)
	var complaint strings.Builder
	semctl := exec.CommandContext(ctx, b.semctl, append(args, flags...)...)
	semctl.Stderr = &complaint
	out, err := semctl.Output()
	if err != nil {
		return measured{}, fmt.Errorf("semctl bench: %w: %s", err, complaint.String())
	}
	return readMeasured(out)
}

func readMeasured(out []byte) (measured, error) {
	var got measured
	if err := json.Unmarshal(out, &got); err != nil {
		return got, fmt.Errorf("read semctl bench: %w", err)
	}
	if got.Granted == 0 || got.PerSecond == 0 {
		return got, fmt.Errorf("read semctl bench: no rate in %q", out)
	}
	return got, nil
}
