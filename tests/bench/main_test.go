package main

import "testing"

func TestRateIsReadFromRedisBenchmark(t *testing.T) {
	out := `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SEM.ACQUIRE p","136674.25","5.663","0.208","3.783","14.607","35.455","189.439"
`
	if got, err := rate(out); got != 136674.25 || err != nil {
		t.Errorf("rate: got %v, %v, want 136674.25", got, err)
	}
	for _, wrong := range []string{"", "\"test\",\"rps\"\n", "Could not connect\n", "\"a\",\"b\"\n\"c\",\"1\"\n"} {
		if got, err := rate(wrong); err == nil {
			t.Errorf("rate of %q: got %v, want an error", wrong, got)
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
