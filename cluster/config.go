package cluster

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/semaphore"
)

// Config is how a node is opened. DefaultConfig fills in everything but DataDir. Without a Logger
// nothing is logged; without Metrics nobody can read them.
type Config struct {
	DataDir  string // made if it does not exist
	NodeID   string // a label for people; Raft's own id is made at random and kept in DataDir
	LogStore string // LogStoreWAL or LogStoreBoltDB; fixed once DataDir is in use

	Limits semaphore.Limits
	// Hold is how long a request without WAIT is kept while it cannot be decided.
	Hold time.Duration
	// WaiterGrace is how long a waiter keeps its place after the node it came through was lost.
	WaiterGrace time.Duration
	// SnapshotBytes is how much log is written before a snapshot is taken and the log is cut.
	SnapshotBytes int64

	// Fatal is called when the node must not go on: it has an entry that it cannot read, and to skip it
	// would be to diverge from nodes that can. It must not return. Without it, the node panics.
	Fatal func(error)

	Clock   Clock
	Logger  *slog.Logger
	Metrics *Metrics
}

// DefaultConfig is the configuration of a node without flags.
func DefaultConfig() Config {
	return Config{
		NodeID:        "semserver",
		LogStore:      LogStoreWAL,
		Limits:        semaphore.DefaultLimits(),
		Hold:          5 * time.Second,
		WaiterGrace:   5 * time.Second,
		SnapshotBytes: 64 << 20,
		Clock:         SystemClock(),
	}
}

// complete fills in what may be left out.
func (c Config) complete() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	if c.Fatal == nil {
		c.Fatal = func(err error) { panic(err) }
	}
	if c.Clock.Monotonic == nil || c.Clock.Wall == nil {
		c.Clock = SystemClock()
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.DataDir == "":
		return fmt.Errorf("no data directory")
	case c.LogStore != LogStoreWAL && c.LogStore != LogStoreBoltDB:
		return fmt.Errorf("unknown log store %q: %s or %s", c.LogStore, LogStoreWAL, LogStoreBoltDB)
	case c.Hold <= 0:
		return fmt.Errorf("hold must be longer than 0")
	case c.WaiterGrace <= 0:
		return fmt.Errorf("waiter grace must be longer than 0")
	case c.SnapshotBytes <= 0:
		return fmt.Errorf("snapshot bytes must be more than 0")
	}
	return nil
}
