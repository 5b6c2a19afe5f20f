package server

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/internal/trial"
)

// figures returns every sample of a registry by name and label.
func figures(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := strings.TrimPrefix(f.GetName(), "semserver_")
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestMetricsMoveByWhatHappened(t *testing.T) {
	reg := prometheus.NewRegistry()
	r := start(t, func(c *Config) { c.Metrics = NewMetrics(reg) })
	a := r.dial(t)
	for _, cmd := range []string{
		"SEM.CREATE k 1", "SEM.ACQUIRE k HOLDER a", "SEM.ACQUIRE k HOLDER a", "SEM.ACQUIRE k HOLDER x", "SEM.ACQUIRE k HOLDER y WAIT 1",
		"SEM.ACQUIRE nowhere", "SEM.RENEW k a LEASE 5", "SEM.RELEASE k nobody", "SEM.ACQUIRE k WAIT x", "NOSUCH",
	} {
		a.do(cmd)
	}
	b := r.dial(t).send("SEM.ACQUIRE k HOLDER b WAIT 60000")
	r.waits(t, "k", 1, 1)
	trial.Until(t, "b is seen waiting", func() bool { return figures(t, reg)["waiting_clients"] == 1 })
	gone := r.dial(t).send("SEM.ACQUIRE k HOLDER gone WAIT 60000")
	r.waits(t, "k", 1, 2)
	gone.Close()
	r.waits(t, "k", 1, 1)
	a.do("SEM.RELEASE k a")
	b.reply()
	trial.Until(t, "the one who hung up is counted", func() bool { return figures(t, reg)["hangups_total"] == 1 })

	got := figures(t, reg)
	for name, want := range map[string]float64{
		"grants_total immediate": 1, "grants_total replayed": 1, "grants_total waited": 1,
		"refusals_total NULL": 3, "refusals_total NOSEM": 1, "refusals_total ERR": 2,
		"releases_total": 1, "renewals_total": 1, "waiting_clients": 0, "hangups_total": 1, "grants_given_back_total": 0,
		"acquire_wait_seconds granted": 1, "acquire_wait_seconds none": 2, "connections": 2,
		"commands_total sem.acquire": 8, "commands_total sem.release": 2, "commands_total ping": 0,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
}
