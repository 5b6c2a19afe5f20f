package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/semserver/semserver/semaphore"
)

// Metrics counts what a Server does. One Metrics serves one Server.
type Metrics struct {
	waits       *prometheus.HistogramVec
	waitGranted prometheus.Observer
	waitEnded   prometheus.Observer
	immediate   prometheus.Counter
	late        prometheus.Counter
	replayed    prometheus.Counter
	refusals    *prometheus.CounterVec
	releases    prometheus.Counter
	renewals    prometheus.Counter
	hangups     prometheus.Counter
	givenBack   prometheus.Counter
	waiting     prometheus.Gauge
	connections prometheus.Gauge
	turnedAway  prometheus.Counter
	byCommand   *prometheus.CounterVec
	commands    []prometheus.Counter // by command.index
}

// NewMetrics makes the metrics of a server and registers them with reg, unless that is nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "semserver_acquire_wait_seconds", Help: "Time that acquires stood in line, by how it ended; those granted at once are not in it.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 12),
		}, []string{"outcome"}),
		refusals:    counters("semserver_refusals_total", "Commands that were refused or failed, by the code of the error; NULL: no permit in time.", "code"),
		releases:    counter("semserver_releases_total", "Releases that gave permits back."),
		renewals:    counter("semserver_renewals_total", "Renewals that set a lease."),
		hangups:     counter("semserver_hangups_total", "Clients that hung up while they stood in line."),
		givenBack:   counter("semserver_grants_given_back_total", "Grants given back because their client had hung up before it was told."),
		waiting:     gauge("semserver_waiting_clients", "Clients that stand in line."),
		connections: gauge("semserver_connections", "Clients that are connected."),
		turnedAway:  counter("semserver_connections_refused_total", "Connections turned away by a limit or by protected mode."),
		byCommand:   counters("semserver_commands_total", "Commands received, by name.", "command"),
	}
	grants := counters("semserver_grants_total", "Grants, by how they came about; those given back are counted too.", "kind")
	m.immediate, m.late, m.replayed = grants.WithLabelValues("immediate"), grants.WithLabelValues("waited"), grants.WithLabelValues("replayed")
	m.waitGranted, m.waitEnded = m.waits.WithLabelValues("granted"), m.waits.WithLabelValues("none")
	if reg != nil {
		reg.MustRegister(m.waits, grants, m.refusals, m.releases, m.renewals, m.hangups, m.givenBack,
			m.waiting, m.connections, m.turnedAway, m.byCommand)
	}
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// describe makes the counters of the commands.
func (m *Metrics) describe(t *table) {
	m.commands = make([]prometheus.Counter, len(t.all))
	for i, c := range t.all {
		m.commands[i] = m.byCommand.WithLabelValues(c.name)
	}
}

// decided counts the reply to a request that was decided at once.
func (m *Metrics) decided(q semaphore.Request, r semaphore.Reply) {
	if r.Err != nil {
		m.refused(asError(r.Err).Code)
		return
	}
	switch q.(type) {
	case semaphore.Acquire:
		m.acquired(r, m.immediate)
	case semaphore.Release:
		if r.Value == semaphore.Number(1) {
			m.releases.Inc()
		}
	case semaphore.Renew:
		if r.Value != semaphore.Number(0) {
			m.renewals.Inc()
		}
	}
}

// waited counts the end of a wait in line, however it came.
func (m *Metrics) waited(r semaphore.Reply, took time.Duration) {
	if r.Err != nil {
		m.refused(asError(r.Err).Code)
	} else {
		m.acquired(r, m.late)
	}
	if _, ok := r.Value.(*semaphore.Grant); ok {
		m.waitGranted.Observe(took.Seconds())
		return
	}
	m.waitEnded.Observe(took.Seconds())
}

func (m *Metrics) acquired(r semaphore.Reply, first prometheus.Counter) {
	g, ok := r.Value.(*semaphore.Grant)
	switch {
	case !ok:
		m.refused("NULL")
	case g.Replayed:
		m.replayed.Inc()
	default:
		first.Inc()
	}
}

func (m *Metrics) refused(code semaphore.Code) { m.refusals.WithLabelValues(string(code)).Inc() }
