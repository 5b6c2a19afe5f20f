package cluster

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/semaphore"
)

// MinElectionTimeout is the shortest that may be set: below it, a slow disk looks like a dead leader.
const MinElectionTimeout = 100 * time.Millisecond

// Config is how a node is opened. DefaultConfig fills in everything but DataDir. Without a Logger
// nothing is logged; without Metrics nobody can read them.
type Config struct {
	DataDir string // made if it does not exist
	NodeID  string // a label for people; Raft's own id is made at random and kept in DataDir
	// NodeIDGiven: the operator has chosen NodeID. Then no two live nodes of a cluster may have it, and
	// a new node with it replaces a member that had it and cannot be reached.
	NodeIDGiven bool
	LogStore    string // LogStoreWAL or LogStoreBoltDB; fixed once DataDir is in use

	// PeerListen is where the node listens for its peers, host:port; empty: it is a cluster of one, and
	// does not listen.
	PeerListen string
	// PeerAdvertise is where the peers reach this node, host:port, which may be a name; empty: where it
	// listens.
	PeerAdvertise string
	// ClientAdvertise is where clients reach this node, as the other nodes tell them.
	ClientAdvertise string
	// Join are addresses of peers, this node's own perhaps among them.
	Join []string
	// BootstrapExpect is how many empty nodes form a cluster when they have found each other; 0: this
	// node only joins one that exists.
	BootstrapExpect int
	// PeerSecurity is how nodes know each other, MaxPeers how many connections they have to this one.
	PeerSecurity peer.Security
	MaxPeers     int
	// ElectionTimeout is how long a leader may be silent before another is elected.
	ElectionTimeout time.Duration

	// Restore is a file of state, as SnapshotFile names it. The node begins a new cluster with it, which
	// others may join; its data directory must be empty.
	Restore string
	// RecoverSingle makes a cluster of this node alone out of what its data directory holds, when the
	// majority of its cluster is gone for ever. What only the others had is lost.
	RecoverSingle bool

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
	// Removed is called once, when this node has learnt that the cluster has removed it. It has answered
	// everybody, decides nothing any more, and is to be closed, by somebody else than the callee: it must
	// return. Without it, the node calls Fatal.
	Removed func(error)

	patience time.Duration // searchPatience
	backup   *backup       // what Restore holds

	Clock   Clock
	Logger  *slog.Logger
	Metrics *Metrics
}

// DefaultConfig is the configuration of a node without flags.
func DefaultConfig() Config {
	return Config{
		NodeID:          "semserver",
		LogStore:        LogStoreWAL,
		MaxPeers:        peer.DefaultMaxConns,
		ElectionTimeout: 300 * time.Millisecond,
		Limits:          semaphore.DefaultLimits(),
		Hold:            5 * time.Second,
		WaiterGrace:     5 * time.Second,
		SnapshotBytes:   64 << 20,
		Clock:           SystemClock(),
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
	if c.Removed == nil {
		c.Removed = c.Fatal
	}
	if c.patience == 0 {
		c.patience = searchPatience
	}
	if c.Clock.Monotonic == nil || c.Clock.Wall == nil {
		c.Clock = SystemClock()
	}
	return c
}

// examine looks at what the configuration names, before anything is made.
func (c *Config) examine() (err error) {
	switch {
	case c.Restore != "":
		c.backup, err = readBackup(c.Restore)
	case c.RecoverSingle:
		var id identity
		if id, err = peekIdentity(c.DataDir); err == nil && id.ID == "" {
			err = nothingToRecover(c.DataDir)
		}
	}
	return err
}

// Validate refuses a configuration that cannot be, whatever the data directory holds. Open does so, too.
func (c Config) Validate() error {
	switch {
	case c.DataDir == "":
		return fmt.Errorf("no data directory")
	case c.LogStore != LogStoreWAL && c.LogStore != LogStoreBoltDB:
		return fmt.Errorf("unknown log store %q: %s or %s", c.LogStore, LogStoreWAL, LogStoreBoltDB)
	case c.PeerListen != "" && c.ElectionTimeout < MinElectionTimeout:
		return fmt.Errorf("election timeout must be at least %v", MinElectionTimeout)
	case c.BootstrapExpect < 0:
		return fmt.Errorf("bootstrap expect must not be negative")
	case c.PeerListen == "" && (len(c.Join) > 0 || c.BootstrapExpect > 0):
		return fmt.Errorf("a node that does not listen for peers cannot join or form a cluster with them")
	case c.Restore != "" && c.RecoverSingle:
		return fmt.Errorf("--restore begins anew and --recover-single goes on: give one of them")
	case c.Restore != "" && (len(c.Join) > 0 || c.BootstrapExpect > 1):
		return fmt.Errorf("--restore begins a cluster of one: the other nodes --join it, it joins none and waits for none")
	case c.RecoverSingle && (len(c.Join) > 0 || c.BootstrapExpect > 0):
		return fmt.Errorf("--recover-single makes a cluster of one: leave out --join and --bootstrap-expect")
	case c.Hold <= 0:
		return fmt.Errorf("hold must be longer than 0")
	case c.WaiterGrace <= 0:
		return fmt.Errorf("waiter grace must be longer than 0")
	case c.SnapshotBytes <= 0:
		return fmt.Errorf("snapshot bytes must be more than 0")
	}
	return nil
}
