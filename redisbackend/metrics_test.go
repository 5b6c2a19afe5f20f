package redisbackend

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// figures reads counters and gauges by name, and how often histograms have observed something.
func figures(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch {
			case m.GetCounter() != nil:
				all[f.GetName()] += m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				all[f.GetName()] += m.GetGauge().GetValue()
			default:
				all[f.GetName()] += float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return all
}

func TestMetricsTellWhatHappens(t *testing.T) {
	reg := prometheus.NewRegistry()
	r := redisd.Run(t)
	e := openEngine(t, r, eager, func(c *Config) { c.Metrics = NewMetrics(reg) })
	w := holdAndWait(t, e)
	<-wait(t, e, "c", time.Millisecond).Done
	if got := figures(t, reg)["semserver_waiters"]; got != 1 {
		t.Errorf("waiters: got %v, want 1", got)
	}
	release(t, e, "a")
	granted(t, w)
	release(t, e, "b")
	brief := semaphore.Acquire{Key: "k", Holder: "d", Permits: 1, Lease: 10 * time.Millisecond}
	if got := one(e, brief); got.Value == nil {
		t.Fatalf("got %v, want a grant", got.Err)
	}
	trial.Until(t, "the end of a lease", func() bool { return figures(t, reg)["semserver_expirations_total"] == 1 })
	trial.Until(t, "a pass", func() bool { return figures(t, reg)["semserver_reconcile_passes_total"] > 0 })

	got := figures(t, reg)
	for name, want := range map[string]float64{
		"semserver_ready": 1, "semserver_waiters": 0, "semserver_state_grants_total": 3, "semserver_state_releases_total": 2,
		"semserver_state_wait_timeouts_total": 1, "semserver_uncertain_total": 0, "semserver_redis_given_back_total": 0,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"semserver_redis_call_seconds", "semserver_redis_call_requests", "semserver_reconcile_pass_seconds"} {
		if got[name] == 0 {
			t.Errorf("%s: got nothing observed, want some", name)
		}
	}
}
