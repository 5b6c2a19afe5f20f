package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/fsm"
)

// Metrics are what a node tells about its engine.
type Metrics struct {
	commit          prometheus.Histogram
	snapshotSeconds prometheus.Histogram
	snapshotBytes   prometheus.Gauge
	leaderships     prometheus.Counter
	voids           prometheus.Counter
	uncertain       prometheus.Counter
	lostNodes       prometheus.Counter
	registerer      prometheus.Registerer
}

// NewMetrics makes the engine's metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "semserver_commit_seconds", Help: "Time from proposing an entry to applying it, flushed to disk.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		snapshotSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "semserver_snapshot_seconds", Help: "Time to write a snapshot.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		snapshotBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "semserver_snapshot_bytes", Help: "Size of the last snapshot written.",
		}),
		leaderships: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "semserver_leaderships_total", Help: "How often this node became leader.",
		}),
		voids: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "semserver_void_entries_total", Help: "Entries of a former leadership that took no effect.",
		}),
		uncertain: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "semserver_uncertain_total", Help: "Requests that were answered UNCERTAIN: their outcome was not known in time.",
		}),
		lostNodes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "semserver_lost_nodes_total", Help: "Lives of nodes that were given up, because they died, were cut off or stopped: their waiters keep their places for the grace.",
		}),
		registerer: reg,
	}
	reg.MustRegister(m.commit, m.snapshotSeconds, m.snapshotBytes, m.leaderships, m.voids, m.uncertain, m.lostNodes)
	return m
}

// watch registers figures that are read when somebody asks.
func (m *Metrics) watch(n *Node) {
	gauge := func(name, help string, read func() float64) {
		m.registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	counter := func(name, help string, read func(fsm.Stats) int64) {
		m.registerer.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(read(n.machine.published.Load().stats)) }))
	}
	state := func(name, help string, read func(fsm.Stats) int64) {
		gauge(name, help, func() float64 { return float64(read(n.machine.published.Load().stats)) })
	}
	state("semserver_semaphores", "Semaphores.", func(s fsm.Stats) int64 { return s.Semaphores })
	state("semserver_holders", "Live grants.", func(s fsm.Stats) int64 { return s.Holders })
	state("semserver_permits_in_use", "Permits in live grants.", func(s fsm.Stats) int64 { return s.InUse })
	state("semserver_waiters", "Requests that stand in line.", func(s fsm.Stats) int64 { return s.Waiters })
	state("semserver_permits_quarantined", "Permits out of circulation after their lease expired.", func(s fsm.Stats) int64 { return s.Quarantined })
	state("semserver_orphans", "Waiters whose node was lost.", func(s fsm.Stats) int64 { return s.Orphans })
	counter("semserver_state_grants_total", "Grants that this state machine has made.", func(s fsm.Stats) int64 { return s.Granted })
	counter("semserver_state_releases_total", "Grants that were released.", func(s fsm.Stats) int64 { return s.Released })
	counter("semserver_state_wait_timeouts_total", "Waits that ended without a grant.", func(s fsm.Stats) int64 { return s.TimedOut })
	counter("semserver_semaphores_removed_total", "Semaphores removed because nobody used them.", func(s fsm.Stats) int64 { return s.Removed })
	counter("semserver_expirations_total", "Leases that ended while held.", func(s fsm.Stats) int64 { return s.Expired })
	counter("semserver_reconciled_total", "Permits put back by SEM.RECONCILE.", func(s fsm.Stats) int64 { return s.Reconciled })
	gauge("semserver_proposals_queued", "Requests that wait to be proposed.", func() float64 { queued, _ := n.queue.lengths(); return float64(queued) })
	truth := func(name, help string, read func() bool) {
		gauge(name, help, func() float64 {
			if read() {
				return 1
			}
			return 0
		})
	}
	truth("semserver_leader", "1 while this node leads.", func() bool { return n.proposer.leading() != nil })
	truth("semserver_ready", "1 while this node can have requests decided: it leads, or the leader takes them.", func() bool { return n.Ready() == nil })
	gauge("semserver_guests", "Nodes whose requests this node takes, while it leads.", func() float64 { return float64(n.guests.number()) })
}
