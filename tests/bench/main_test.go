package main

import (
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

func TestRateIsReadFromSemctlBench(t *testing.T) {
	out := `{"elapsed_ms":59,"granted":1000,"per_second":16811.5,"refused":0,"errors":{},"addrs":[]}`
	if got, err := readMeasured([]byte(out)); got.Granted != 1000 || got.PerSecond != 16811.5 || err != nil {
		t.Errorf("got %+v, %v, want 1000 grants at 16811.5", got, err)
	}
	for _, wrong := range []string{"", "semctl: no server answers", `{}`, `{"granted":1}`, `{"granted":"many"}`} {
		if got, err := readMeasured([]byte(wrong)); err == nil {
			t.Errorf("%q: got %+v, want an error", wrong, got)
		}
	}
}

func TestMedianRatioComparesRoundByRound(t *testing.T) {
	ours, theirs := []float64{30, 3, 6}, []float64{10, 1, 3}
	if got := medianRatio(ours, theirs); got != 3 {
		t.Errorf("ratio: got %v, want 3", got)
	}
	if ours[0] != 30 {
		t.Errorf("figures: got %v, want them left in order", ours)
	}
}

func TestCountsThatMeasureNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-requests16", "-1"}, {"-waiters", "0"}, {"-nonsense"}} {
		if s, err := parse(args); err == nil {
			t.Errorf("%v: got %+v, want an error", args, s)
		}
	}
}

func TestOnlyAcquiresUnderWayMeanwhileCount(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(began, took time.Duration) sample { return sample{start.Add(began), took} }
	taken := []sample{
		at(0, 9*time.Second),                // over before
		at(0, 11*time.Second),               // reaches in
		at(11*time.Second, time.Second),     // inside
		at(19*time.Second, 5*time.Second),   // reaches out
		at(20*time.Second, 100*time.Second), // began after
	}
	from, to := start.Add(10*time.Second), start.Add(20*time.Second)
	got, err := during(taken, from, to)
	if want := (latency{p99: 11000, worst: 11000}); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := during(taken[:1], from, to); err == nil {
		t.Errorf("no acquire meanwhile: got %v, want an error", got)
	}
}

func TestTypicalLatencyKeepsTheWorstOfAllRounds(t *testing.T) {
	got := typical([]latency{{p99: 3, worst: 40}, {p99: 1, worst: 9}, {p99: 2, worst: 8}})
	if want := (latency{p99: 2, worst: 40}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestARefusalIsNoText(t *testing.T) {
	for _, reply := range []any{resp.Error("CLUSTERDOWN no leader"), nil, int64(1)} {
		if err := isText(reply, nil); err == nil {
			t.Errorf("%v: got no error, want one", reply)
		}
	}
	for _, reply := range []any{"/data/snapshots/1/state.bin", resp.Simple("OK")} {
		if err := isText(reply, nil); err != nil {
			t.Errorf("%v: got %v, want no error", reply, err)
		}
	}
}

func TestCostsStandBesideTheRate(t *testing.T) {
	d := duel{ours: []float64{10, 30, 20}, theirs: []float64{1, 2, 4}, leading: []float64{7, 8, 9}, following: []float64{1, 2, 3}}
	rows := d.rows("pairs", "etcd", 8, true)
	if got, want := rows[0], (row{"pairs", "20 /s", "etcd 2 /s", "10.00", ">= 8.0", true}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := rows[1].figure+" "+rows[1].against, "8.0 µs a follower 2.0 µs"; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	d.theirs = nil
	if got, want := d.rows("pairs", "etcd", 8, true)[0], (row{what: "pairs", figure: "20 /s"}); got != want {
		t.Errorf("without an adversary: got %v, want %v", got, want)
	}
}

func TestASideIsComparedWithTheOtherRoundByRound(t *testing.T) {
	ours := figures{rates: []float64{30, 3, 6}, costs: []float64{4, 5, 6}}
	theirs := figures{rates: []float64{10, 1, 3}, costs: []float64{8, 10, 12}}
	rows := versus("acquire", ours, theirs, 1.5)
	if got, want := rows[0], (row{"acquire", "6 /s", "EVALSHA 3 /s", "3.00", ">= 1.5", true}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := rows[1].figure+" "+rows[1].against+" "+rows[1].ratio, "5.0 µs EVALSHA 10.0 µs 0.50"; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := versus("acquire", theirs, ours, 1)[0]; got.passed {
		t.Errorf("got %v, want the target to be missed", got)
	}
	if got := versus("pairs", ours, theirs, 0)[0]; got.target != "" || got.passed {
		t.Errorf("got %v, want no target", got)
	}
}

func TestAMissingEtcdIsSaidBeforeAnythingIsMeasured(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := run(t.Context(), []string{"-only", "three"})
	if err == nil || !strings.Contains(err.Error(), "-etcd=false") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that names -etcd=false", err)
	}
}
