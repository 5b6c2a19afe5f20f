package redisbackend

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/semaphore"
)

// Metrics are what the engine tells about itself.
type Metrics struct {
	call        prometheus.Histogram
	requests    prometheus.Histogram
	repeated    *prometheus.CounterVec
	granted     prometheus.Counter
	released    prometheus.Counter
	timedOut    prometheus.Counter
	expired     prometheus.Counter
	reconciled  prometheus.Counter
	removed     prometheus.Counter
	givenBack   prometheus.Counter
	uncertain   prometheus.Counter
	passes      prometheus.Counter
	passSeconds prometheus.Histogram
	registerer  prometheus.Registerer
}

// NewMetrics makes the engine's metrics and registers them. What is counted is what was done through
// this server; other servers of the same Redis count their own.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	m := &Metrics{
		call: histogram("semserver_redis_call_seconds", "Time from sending a script call to its reply.",
			prometheus.ExponentialBuckets(0.0001, 2, 16)),
		requests: histogram("semserver_redis_call_requests", "Requests that shared a script call.", []float64{0, 1, 2, 4, 8, 16, 32, 50}),
		repeated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "semserver_redis_repeated_calls_total", Help: "Script calls that were made again, by why: down, late or unknown.",
		}, []string{"why"}),
		granted:    counter("semserver_state_grants_total", "Grants that were made."),
		released:   counter("semserver_state_releases_total", "Grants that were released."),
		timedOut:   counter("semserver_state_wait_timeouts_total", "Waits that ended without a grant."),
		expired:    counter("semserver_expirations_total", "Leases that were found to have ended while held."),
		reconciled: counter("semserver_reconciled_total", "Permits put back by SEM.RECONCILE and by the periodic pass."),
		removed:    counter("semserver_semaphores_removed_total", "Semaphores removed because nobody used them."),
		givenBack:  counter("semserver_redis_given_back_total", "Grants given back because nobody could be told of them."),
		uncertain:  counter("semserver_uncertain_total", "Requests that were answered UNCERTAIN: their outcome was not known in time."),
		passes:     counter("semserver_reconcile_passes_total", "Periodic passes over all semaphores that this server made."),
		passSeconds: histogram("semserver_reconcile_pass_seconds", "Time of a periodic pass over all semaphores.",
			prometheus.ExponentialBuckets(0.01, 2, 14)),
		registerer: reg,
	}
	reg.MustRegister(m.repeated)
	return m
}

// watch registers figures that are read when somebody asks.
func (m *Metrics) watch(o *office, ready func() error) {
	gauge := func(name, help string, read func() float64) {
		m.registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	gauge("semserver_waiters", "Requests that stand in line.", func() float64 { return float64(o.waiters.Load()) })
	gauge("semserver_ready", "1 while Redis takes this server's calls.", func() float64 {
		if ready() != nil {
			return 0
		}
		return 1
	})
}

// landed notes the reply to a call.
func (m *Metrics) landed(f *flight) {
	m.call.Observe(time.Since(f.sent).Seconds())
	m.requests.Observe(float64(len(f.items)))
}

// replied notes what became of a request.
func (m *Metrics) replied(q semaphore.Request, r semaphore.Reply) {
	n, _ := r.Value.(semaphore.Number)
	switch q.(type) {
	case semaphore.Acquire:
		if g, ok := r.Value.(*semaphore.Grant); ok && !g.Replayed {
			m.granted.Inc()
		}
	case semaphore.Release:
		m.released.Add(float64(n))
	case semaphore.Reconcile:
		m.reconciled.Add(float64(n))
	}
}
