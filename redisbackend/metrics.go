package redisbackend

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/semaphore"
)

// Metrics are what the engine tells about itself.
type Metrics struct {
	uncertain  prometheus.Counter
	registerer prometheus.Registerer
}

// NewMetrics makes the engine's metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		uncertain: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "semserver_uncertain_total", Help: "Requests that were answered UNCERTAIN: their outcome was not known in time.",
		}),
		registerer: reg,
	}
	reg.MustRegister(m.uncertain)
	return m
}

func (m *Metrics) granted(it *item, r semaphore.Reply) {}

func (m *Metrics) handedOver(w *waiter, r semaphore.Reply) {}
