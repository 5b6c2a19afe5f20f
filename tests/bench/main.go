package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/semserver/semserver/tests/internal/node"
)

// settings are the flags.
type settings struct {
	rounds   int
	only     string
	binary   string
	semctl   string
	folder   string
	stores   []string
	requests map[int]int // by pipeline depth
	waiters  int
	leases   int
	etcd     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	s := settings{requests: map[int]int{}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&s.rounds, "rounds", 5, "`times` that each figure is measured; the median counts")
	flags.StringVar(&s.only, "only", "", "measure only what this `word` is part of: "+strings.Join(names(), ", "))
	flags.StringVar(&s.binary, "binary", "", "`path` of a semserver; without it one is built")
	flags.StringVar(&s.semctl, "semctl", "", "`path` of a semctl; without it one is built")
	flags.StringVar(&s.folder, "dir", "", "`folder` for data, on the disk to be measured (default: the system's temporary folder)")
	stores := flags.String("stores", "wal,boltdb", "log stores to compare; the first one is measured in full")
	single := flags.Int("requests", 50_000, "requests of one throughput run without pipelining")
	deep := flags.Int("requests16", 200_000, "requests of one throughput run with 16 in a pipeline")
	flags.IntVar(&s.waiters, "waiters", 10_000, "connections that wait while memory is measured")
	flags.IntVar(&s.leases, "leases", 100_000, "leases that end in one instant")
	flags.BoolVar(&s.etcd, "etcd", true, "compare three nodes with an etcd; with false they are measured without one")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.stores = strings.Split(*stores, ",")
	s.requests[1], s.requests[16] = *single, *deep
	if least := slices.Min([]int{s.rounds, *single, *deep, s.waiters, s.leases}); least < 1 {
		return s, fmt.Errorf("a count of %d measures nothing", least)
	}
	return s, nil
}

// measurement is one figure, or a few that belong together.
type measurement struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

func measurements() []measurement {
	return []measurement{
		{"throughput", throughput},
		{"handover", handover},
		{"handover-three", handoverThree},
		{"expiry", expiry},
		{"memory", memory},
		{"three", three},
		{"failover", failover},
		{"snapshot", snapshot},
		{"redismode", redisMode},
	}
}

func names() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

// bench is one run of the program.
type bench struct {
	settings
	rows []row
}

// row is a line of the table. The target is already met when passed says so; an empty target has none.
type row struct {
	what, figure, against, ratio, target string
	passed                               bool
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	b := &bench{settings: s}
	if b.measures("three") && b.etcd {
		if err := lookForEtcd(); err != nil {
			return err
		}
	}
	b.warnOfLoad()
	if b.folder, err = os.MkdirTemp(s.folder, "semserver-bench-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(b.folder)
	if err := b.build(); err != nil {
		return err
	}
	defer b.print()
	for _, m := range measurements() {
		if !b.measures(m.name) {
			continue
		}
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// measures reports whether a measurement was asked for.
func (b *bench) measures(name string) bool { return strings.Contains(name, b.only) }

// build builds the programs that were not given.
func (b *bench) build() (err error) {
	if b.binary == "" {
		b.progress("building semserver")
		if b.binary, err = node.Build(b.folder); err != nil {
			return err
		}
	}
	if b.semctl != "" {
		return nil
	}
	b.progress("building semctl")
	b.semctl = filepath.Join(b.folder, "semctl")
	out, err := exec.Command("go", "build", "-o", b.semctl, "github.com/semserver/semserver/cmd/semctl").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build semctl: %w\n%s", err, out)
	}
	return nil
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// warnOfLoad says so when the machine has other work, which no ratio makes up for entirely.
func (b *bench) warnOfLoad() {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return // not on Linux
	}
	var load float64
	if n, _ := fmt.Sscan(string(text), &load); n == 1 && load > 0.5 {
		b.progress("the machine is busy (load %.1f): the figures will be worth little", load)
	}
}

// start runs a semserver on a folder of its own.
func (b *bench) start(flags ...string) (*node.Node, error) {
	data, err := os.MkdirTemp(b.folder, "data-")
	if err != nil {
		return nil, fmt.Errorf("make a data directory: %w", err)
	}
	return node.Start(b.binary, "127.0.0.1:0", data, flags...)
}

func (b *bench) print() {
	if len(b.rows) == 0 {
		return
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "what\tfigure\tagainst\tratio\ttarget\t")
	for _, r := range b.rows {
		verdict := ""
		if r.target != "" {
			verdict = map[bool]string{true: "pass", false: "FAIL"}[r.passed]
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.figure, r.against, r.ratio, r.target, verdict)
	}
	// A broken standard output leaves nobody to tell.
	_ = out.Flush()
}

// median is the middle one of the figures of all rounds.
func median[V int64 | float64](figures []V) V {
	sorted := slices.Clone(figures)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}
