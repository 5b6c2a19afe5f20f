package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	connections = 50
	// holderPlaceholder is replaced by redis-benchmark with a number below holderSpace, anew in each
	// request.
	holderPlaceholder = "__rand_int__"
	holderSpace       = 2_000_000_000
	// loadTimeout is the longest that one run may take.
	loadTimeout = 5 * time.Minute
)

// side is a server under load.
type side interface {
	address() string
	pid() int
	// prepare makes a new semaphore with at least that many free permits and returns the command that
	// acquires one of them.
	prepare(permits int) (command []string, err error)
	// granted is how many grants that semaphore has made.
	granted() (int64, error)
	stop()
}

// semserver is our side.
type semserver struct {
	node *node.Node
	conn *resp.Conn
	key  string
	runs int
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

func (s *semserver) stop() {
	_ = s.conn.Close() // nothing is left to be read
	s.node.Kill()
}

func (s *semserver) prepare(int) ([]string, error) {
	if s.runs > 0 {
		if _, err := s.conn.Do("SEM.DELETE", s.key, "FORCE"); err != nil {
			return nil, fmt.Errorf("delete the last semaphore: %w", err)
		}
	}
	s.runs++
	s.key = fmt.Sprint("bench", s.runs)
	if reply, err := s.conn.Do("SEM.CREATE", s.key, 1<<31); err != nil || reply != any(resp.Simple("OK")) {
		return nil, fmt.Errorf("create a semaphore: %v, %w", reply, err)
	}
	return []string{"SEM.ACQUIRE", s.key, "HOLDER", holderPlaceholder, "LEASE", "600000"}, nil
}

func (s *semserver) granted() (int64, error) {
	fields, err := info(s.conn, s.key)
	return fields["grants_immediate"], err
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
			rate, cost, err := load(ctx, sides[name], depth, b.requests[depth])
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

// load runs redis-benchmark and returns requests per second and the server's processor time for each,
// in microseconds. It checks that the work was done: random holders that come twice are the only
// requests without a grant of their own.
func load(ctx context.Context, s side, depth, requests int) (perSecond, cost float64, err error) {
	command, err := s.prepare(requests + connections*depth)
	if err != nil {
		return 0, 0, err
	}
	before, err := cpuTime(s.pid())
	if err != nil {
		return 0, 0, err
	}
	out, err := redisBenchmark(ctx, s.address(), depth, requests, command)
	if err != nil {
		return 0, 0, err
	}
	after, err := cpuTime(s.pid())
	if err != nil {
		return 0, 0, err
	}
	granted, err := s.granted()
	if err != nil {
		return 0, 0, err
	}
	if granted < int64(requests)*99/100 {
		return 0, 0, fmt.Errorf("%d requests brought %d grants", requests, granted)
	}
	perSecond, err = rate(out)
	return perSecond, float64((after - before).Microseconds()) / float64(requests), err
}

// redisBenchmark sends a command that often and returns what redis-benchmark prints.
func redisBenchmark(ctx context.Context, addr string, depth, requests int, command []string) (string, error) {
	port, err := resp.Port(addr)
	if err != nil {
		return "", err
	}
	args := []string{"-h", "127.0.0.1", "-p", fmt.Sprint(port), "-c", fmt.Sprint(connections), "-P", fmt.Sprint(depth),
		"-n", fmt.Sprint(requests), "-r", fmt.Sprint(holderSpace), "--csv"}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var complaint strings.Builder
	benchmark := exec.CommandContext(ctx, "redis-benchmark", append(args, command...)...)
	benchmark.Stderr = &complaint
	out, err := benchmark.Output()
	if err != nil {
		return "", fmt.Errorf("redis-benchmark: %w: %s%s", err, complaint.String(), out)
	}
	return string(out), nil
}

// rate finds the requests per second in what redis-benchmark prints.
func rate(out string) (float64, error) {
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		return 0, fmt.Errorf("read redis-benchmark: %w", err)
	}
	if len(records) != 2 || len(records[0]) < 2 || records[0][1] != "rps" {
		return 0, fmt.Errorf("read redis-benchmark: no rate in %q", out)
	}
	return strconv.ParseFloat(records[1][1], 64)
}
