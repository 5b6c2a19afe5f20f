package cluster

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
)

// load reads the directory's identity, or gives it one, and opens the log and the snapshots. What it
// cannot trust it refuses. On an error the caller still closes.
func (s *stores) load(cfg Config) (identity, error) {
	id, err := loadIdentity(cfg)
	if err != nil {
		return id, err
	}
	if err := s.open(cfg.DataDir, cfg.LogStore, cfg.Logger); err != nil {
		return id, err
	}
	for _, check := range []func() error{
		func() error { return s.checkStop(cfg.DataDir, id) },
		func() error { return s.checkWhole(cfg.DataDir, id, cfg.Logger) },
		func() error { return s.checkPlan(cfg, id) },
	} {
		if err := check(); err != nil {
			return id, err
		}
	}
	return id, nil
}

// enter makes good what the last life of the node left behind. Until nothing speaks against the start any
// more, none of it is touched: whoever starts a node wrongly has changed nothing.
func (s *stores) enter(dir string) error {
	if err := removeDurably(filepath.Join(dir, stoppedFile)); err != nil {
		return fmt.Errorf("remove where the log ended: %w", err)
	}
	if err := s.mendBootstrap(); err != nil {
		return fmt.Errorf("undo a bootstrap that was cut short: %w", err)
	}
	return s.mendLog(dir)
}

// checkPlan refuses to open a directory for what it cannot be.
func (s *stores) checkPlan(cfg Config, id identity) error {
	begun, err := s.begun()
	switch {
	case err != nil:
		return err
	case begun && cfg.Restore != "":
		return fmt.Errorf("restore needs an empty data directory, and %s has state: to go on with it, start without --restore", cfg.DataDir)
	case !begun && cfg.RecoverSingle:
		return nothingToRecover(cfg.DataDir)
	case !begun && id.Restoring && cfg.Restore == "":
		return fmt.Errorf("nothing has been restored to %s yet: start with --restore again, or on an empty directory to begin without it", cfg.DataDir)
	case id.Recovering && !cfg.RecoverSingle:
		return fmt.Errorf("the recovery of %s was cut short: start with --recover-single again", cfg.DataDir)
	case cfg.PeerListen != "" || id.Cluster == "" || cfg.RecoverSingle:
		return nil
	}
	members, err := s.configuration()
	if err != nil {
		return err
	}
	if others(members, id.ID) > 0 {
		return fmt.Errorf("%s belongs to a cluster of %d nodes: start it with --peer-listen, or with --recover-single if the others are gone for ever", cfg.DataDir, len(members.Servers))
	}
	return nil
}

// startRaft starts Raft on the stores. A node without peers forms a cluster of one where they are empty;
// one with peers waits until it has found them.
func (n *Node) startRaft() (err error) {
	cfg := n.raftConfig()
	transport, err := n.connect(cfg)
	if err != nil {
		return err
	}
	started := false
	defer func() { // also when the stores panic over what they cannot read
		if !started {
			err = errors.Join(err, shut(transport), n.disconnect())
		}
	}()
	if err := n.refuseForeigners(); err != nil {
		return err
	}
	if err := n.stores.enter(n.cfg.DataDir); err != nil {
		return err
	}
	if err := n.prepare(cfg, transport); err != nil {
		return err
	}
	log, snapshots := n.stores.noted(n.id)
	n.raft, err = raft.NewRaft(cfg, n.machine, log, n.stores.stable, snapshots, transport)
	if err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	started = true
	n.proposer.raft = n.raft
	if n.membership != nil {
		n.membership.begin(n.raft)
		return nil
	}
	if err := n.member(); err != nil {
		return errors.Join(err, n.raft.Shutdown().Error())
	}
	return nil
}

// prepare makes of the directory what it has to be before Raft starts.
func (n *Node) prepare(cfg *raft.Config, transport raft.Transport) error {
	begun, err := n.stores.begun()
	switch {
	case err != nil:
		return err
	case n.cfg.Restore != "":
		return n.restore(transport)
	case n.cfg.RecoverSingle:
		return n.recoverSingle(cfg, transport)
	case begun && n.network != nil:
		return n.named()
	case !begun && n.network == nil:
		return n.formAlone(cfg, transport)
	}
	return nil
}

// named gives a cluster an id that was one without peers so far.
func (n *Node) named() error {
	return n.id.change(func(id *identity) error {
		if id.Cluster == "" {
			id.Cluster = randomID()
		}
		return nil
	})
}

// formAlone begins the log of a cluster of one. It has nothing to do with a cluster that an attempt to
// form one may have reserved the node for.
func (n *Node) formAlone(cfg *raft.Config, transport raft.Transport) error {
	err := n.id.change(func(id *identity) error {
		id.Cluster, id.Founder = "", nil
		return nil
	})
	if err != nil {
		return err
	}
	log, snapshots := n.stores.noted(n.id)
	members := n.alone(transport)
	if err := raft.BootstrapCluster(cfg, log, n.stores.stable, snapshots, transport, members); err != nil {
		return fmt.Errorf("form a cluster of one: %w", err)
	}
	return nil
}

func (n *Node) raftConfig() *raft.Config {
	patience := soloTimeout
	if n.cfg.PeerListen != "" {
		patience = n.cfg.ElectionTimeout
	}
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(n.id.ID)
	cfg.Logger = raftLogger(n.cfg.Logger)
	cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = patience, patience, patience
	cfg.CommitTimeout = commitTimeout
	cfg.MaxAppendEntries = maxAppendEntries
	cfg.TrailingLogs = trailingEntries
	cfg.SnapshotThreshold = math.MaxUint64 // see snapshots.go
	cfg.ShutdownOnRemove = false
	cfg.NoLegacyTelemetry = true
	return cfg
}

// connect opens the node's way to its peers, and returns it as Raft wants it. Without peers nothing
// listens.
func (n *Node) connect(cfg *raft.Config) (raft.Transport, error) {
	if n.cfg.PeerListen == "" {
		_, transport := raft.NewInmemTransport(raft.ServerAddress(n.id.ID))
		return transport, nil
	}
	begun, err := n.stores.begun()
	if err != nil {
		return nil, err
	}
	n.network, err = peer.Listen(peer.Config{
		Listen: n.cfg.PeerListen, Advertise: n.cfg.PeerAdvertise, Logger: n.cfg.Logger,
		Security: n.cfg.PeerSecurity, MaxConns: n.cfg.MaxPeers,
	})
	if err != nil {
		return nil, err
	}
	n.membership = newMembership(n)
	n.membership.network = n.network
	n.membership.begun = begun
	layer := newStreamLayer(n.membership)
	n.network.Serve(peer.Host{
		Introduce: n.introduce,
		Admit:     n.admit,
		Handle: map[peer.Purpose]func(net.Conn, peer.Greeting){
			peer.Raft:    layer.handle,
			peer.Forward: n.host,
			peer.Ask:     n.membership.receive,
		},
	})
	return newTransport(layer, cfg), nil
}

// shut closes a transport of which Raft has not become the owner.
func shut(transport raft.Transport) error {
	if c, ok := transport.(raft.WithClose); ok {
		return c.Close()
	}
	return nil
}

// disconnect ends what connect has begun.
func (n *Node) disconnect() error {
	if n.network == nil {
		return nil
	}
	n.membership.cancel()
	return n.network.Close()
}

func (n *Node) clusterID() string { return n.id.read().Cluster }

func (n *Node) introduce() peer.Greeting {
	return peer.Greeting{Cluster: n.clusterID(), Node: n.id.ID, Address: n.network.Address()}
}

// admit decides who may connect. Anybody may ask questions: that is how nodes find each other. All
// else is for nodes of the same cluster.
func (n *Node) admit(p peer.Purpose, g peer.Greeting) error {
	switch {
	case p == peer.Ask:
		return nil
	case g.Node == n.id.ID:
		return errTwin
	case !n.membership.cleared.Load():
		return errStarting
	}
	return n.id.speak(g.Cluster)
}

// member makes sure that the cluster whose log this is counts this node in: else it would wait for
// ever to be asked for its vote.
func (n *Node) member() error {
	future := n.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if _, ok := find(future.Configuration().Servers, n.id.ID); !ok {
		return fmt.Errorf("the log in %s belongs to a cluster without this node (%s)", n.cfg.DataDir, n.id.ID)
	}
	return nil
}
