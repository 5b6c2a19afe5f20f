package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/load"
)

type benchCommand struct {
	Clients      int           `short:"c" default:"50" placeholder:"N" help:"Connections, spread over the addresses (default: ${default})."`
	Pipeline     int           `short:"P" default:"1" placeholder:"N" help:"Requests that a client sends in one go (default: ${default})."`
	Semaphores   int           `default:"1" placeholder:"N" help:"Semaphores that the clients are spread over (default: ${default})."`
	Capacity     int64         `placeholder:"N" help:"Permits of each (default: enough for everybody)."`
	Wait         time.Duration `placeholder:"TIME" help:"How long a client waits in line (default: not at all)."`
	Hold         time.Duration `placeholder:"TIME" help:"How long a permit is held (default: not at all)."`
	AcquiresOnly bool          `help:"Release nothing: every request is an acquire with a holder of its own."`
	Rate         float64       `placeholder:"N" help:"Acquires per second in all; latencies count from when a request is due (default: as fast as it goes)."`
	Warmup       time.Duration `default:"500ms" placeholder:"TIME" help:"Time before anything counts (default: ${default})."`
	For          time.Duration `default:"10s" placeholder:"TIME" help:"How long (default: ${default})."`
	Requests     int64         `short:"n" placeholder:"N" help:"Stop after this many acquires, in place of --for."`
	Redis        bool          `help:"The addresses are those of a Redis, on which scripts do the same."`
}

// Help is printed below the summary.
func (*benchCommand) Help() string {
	return `Makes semaphores of its own and removes them again. Without --wait, who gets no permit counts as refused. Compare figures of one machine and one hour: put the same load on a Redis with --redis --addr HOST:PORT. Exit status 1: more permits of a semaphore were held at one time than it has.`
}

func (c *benchCommand) Run(ctx context.Context, s *session) error {
	cfg := load.Config{
		Servers: s.servers, Redis: c.Redis, Clients: c.Clients, Pipeline: c.Pipeline, Semaphores: c.Semaphores,
		Capacity: c.Capacity, Wait: c.Wait, Hold: c.Hold, AcquiresOnly: c.AcquiresOnly, Rate: c.Rate,
		Warmup: c.Warmup, For: c.For, Requests: c.Requests,
	}
	if err := cfg.Check(); err != nil {
		return &statusError{exitUsage, err}
	}
	if c.Requests > 0 {
		cfg.Warmup = 0 // it would use some of them up
	}
	report, err := load.Run(ctx, cfg)
	if err != nil {
		return &statusError{exitUnavailable, err}
	}
	if err := c.print(s, report); err != nil {
		return err
	}
	if report.Most > report.Capacity {
		return fail(exitNo, "%d permits were held at one time of a semaphore that has %d", report.Most, report.Capacity)
	}
	return nil
}

func (c *benchCommand) print(s *session, r load.Report) error {
	if s.json {
		return s.printJSON(reportObject(r))
	}
	var t table
	t.add("", "granted", "per second", "refused", "errors", "longest gap")
	for _, f := range append(r.Addrs, r.Total) {
		t.add(title(f), number(f.Granted), fmt.Sprintf("%.0f", f.PerSecond), number(f.Refused), errorList(f.Errors), latencyText(f.Gap))
	}
	var l table
	l.add("", "p50", "p90", "p99", "p99.9", "worst", "mean")
	for _, f := range append(r.Addrs, r.Total) {
		name := title(f) + " "
		if f.Addr == "" {
			name = ""
		}
		addLatency(&l, name+"acquire", f.Acquire)
		addLatency(&l, name+"release", f.Release)
	}
	if err := s.printTable(t); err != nil {
		return err
	}
	if err := s.print("\n"); err != nil {
		return err
	}
	if err := s.printTable(l); err != nil {
		return err
	}
	if c.AcquiresOnly {
		return nil
	}
	return s.print(fmt.Sprintf("\nmost permits of a semaphore held at one time: %d\n", r.Most))
}

func title(f load.Figures) string {
	if f.Addr == "" {
		return "all"
	}
	return f.Addr
}

func addLatency(t *table, name string, l load.Latency) {
	if l.Count == 0 {
		return
	}
	t.add(name, latencyText(l.P50), latencyText(l.P90), latencyText(l.P99), latencyText(l.P999), latencyText(l.Worst), latencyText(l.Mean))
}

// latencyText keeps three digits.
func latencyText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 100*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func errorList(counts map[string]int64) string {
	if len(counts) == 0 {
		return "0"
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[code], visible(code)))
	}
	return strings.Join(parts, ", ")
}

func reportObject(r load.Report) object {
	o := object{{"elapsed_ms", r.Elapsed.Milliseconds()}}
	o = append(o, figuresObject(r.Total)...)
	o = append(o, member{"most_at_once", r.Most}, member{"capacity", r.Capacity})
	addrs := []object{}
	for _, f := range r.Addrs {
		addrs = append(addrs, append(object{{"addr", f.Addr}}, figuresObject(f)...))
	}
	return append(o, member{"addrs", addrs})
}

func figuresObject(f load.Figures) object {
	return object{
		{"granted", f.Granted}, {"per_second", f.PerSecond}, {"refused", f.Refused}, {"errors", f.Errors},
		{"longest_gap_us", f.Gap.Microseconds()}, {"acquire", latencyObject(f.Acquire)}, {"release", latencyObject(f.Release)},
	}
}

func latencyObject(l load.Latency) object {
	return object{
		{"count", l.Count}, {"mean_us", l.Mean.Microseconds()}, {"p50_us", l.P50.Microseconds()}, {"p90_us", l.P90.Microseconds()},
		{"p99_us", l.P99.Microseconds()}, {"p999_us", l.P999.Microseconds()}, {"worst_us", l.Worst.Microseconds()},
	}
}
