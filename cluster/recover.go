package cluster

import (
	"fmt"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

func nothingToRecover(dir string) error {
	return fmt.Errorf("--recover-single: there is nothing to recover in %s", dir)
}

// recoverSingle makes a cluster of this node alone, when the majority of its cluster is gone for ever.
// Whatever this node has is taken as decided, also what may not have been; what only the others had is
// lost. The cluster gets a new id, so that the others, should they come back, are refused. It is noted
// before and after: a recovery that was cut short must be repeated, and can be.
func (n *Node) recoverSingle(cfg *raft.Config, transport raft.Transport) error {
	members, err := n.stores.configuration()
	if err != nil {
		return err
	}
	if _, member := find(members.Servers, n.id.ID); member && others(members, n.id.ID) == 0 && !n.id.read().Recovering {
		n.cfg.Logger.Info("nothing to recover: this node is a cluster of one already")
		return n.named()
	}
	err = n.id.change(func(id *identity) error {
		id.Cluster, id.Founder, id.Member, id.Recovering = randomID(), nil, false, true
		return nil
	})
	if err != nil {
		return err
	}
	if err := n.forceAlone(cfg, transport); err != nil {
		return fmt.Errorf("recover single: %w", err)
	}
	n.cfg.Logger.Warn("recovered as a cluster of one: what only the other nodes had is lost, and they must not come back but on empty directories",
		"cluster", n.clusterID(), "members_before", len(members.Servers))
	return n.id.change(func(id *identity) error {
		id.Recovering = false
		return nil
	})
}

// forceAlone replays the log into a machine of its own and writes what comes of it as a snapshot with
// this node as the only member.
func (n *Node) forceAlone(cfg *raft.Config, transport raft.Transport) error {
	scratch := n.cfg
	scratch.Metrics = NewMetrics(prometheus.NewRegistry())
	scratch.Fatal = func(err error) { panic(err) } // Open reports it
	machine := assemble(scratch, n.id.read(), n.stores).machine
	log, snapshots := n.stores.noted(n.id)
	return raft.RecoverCluster(cfg, machine, log, n.stores.stable, snapshots, transport, n.alone(transport))
}
