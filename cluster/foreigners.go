package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Foreigners are nodes of another cluster. Nothing is ever mixed with them; but a node whose addresses to
// join lead to them alone was started wrongly.

// refuseForeigners looks for foreigners before a node starts that is a cluster of one: it would lead at
// once, and grant what nobody there knows of. Where nobody can be reached, it may start. Of several
// members, none decides anything before it has found the others: they look while they run.
func (n *Node) refuseForeigners() (err error) {
	m := n.membership
	if m == nil || len(n.cfg.Join) == 0 || !m.begun {
		return nil
	}
	if m.onDisk, err = n.stores.configuration(); err != nil || others(m.onDisk, n.id.ID) > 0 {
		return err
	}
	own := n.clusterID()
	for _, s := range m.look(m.ctx, n.cfg.Join) {
		if s.Bound && (own == "" || s.Cluster != own) {
			return foreignError(own, s, n.cfg.DataDir)
		}
	}
	return m.refusal() // a twin was found
}

// avoidForeigners looks whether the addresses to join lead to another cluster. With members of its own in
// sight, a node only complains; without, it stops after a while. It looks again once in a while.
func (m *membership) avoidForeigners(ctx context.Context) error {
	if time.Now().Before(m.nextJoinLook) {
		return nil
	}
	own := m.papers.read().Cluster
	var foreign sighting
	for _, s := range m.look(ctx, m.addresses()) {
		switch {
		case s.Bound && s.Cluster == own:
			m.atHome = true
		case s.Bound:
			foreign = s
			m.say(slog.LevelError, "an address to join belongs to another cluster", "address", s.at, "its_cluster", s.Cluster, "our_cluster", own)
		}
	}
	if m.atHome || foreign.Node == "" {
		m.nextJoinLook = time.Now().Add(repeatComplaint)
		return nil
	}
	if time.Since(m.began) > m.cfg.patience {
		m.halt(foreignError(own, foreign, m.cfg.DataDir))
	}
	return nil
}

func foreignError(own string, foreign sighting, dir string) error {
	whose := "cluster " + own
	if own == "" {
		whose = "a cluster of this node alone"
	}
	return fmt.Errorf("--join leads to cluster %s, at %s, but the data in %s belongs to %s: correct --join, or start on an empty directory",
		cmp.Or(foreign.Cluster, "without an id"), foreign.at, dir, whose)
}
