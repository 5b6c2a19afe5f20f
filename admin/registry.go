package admin

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry makes a registry that holds the figures of the Go runtime, of the process, and
// semserver_build, which is always 1 and carries the version as a label.
func NewRegistry(version string) *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "semserver_build",
		Help:        "Always 1; the label is the version of the program.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)

	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build,
	)
	return r
}
