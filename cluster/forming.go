package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// A cluster is formed once, by one of n empty nodes that have found each other: the one with the
// smallest id. It makes up the cluster's id, reserves the others for it, and only when all have agreed
// begins Raft with all of them as voters. What keeps this safe, whatever happens on the way, is not
// this protocol but two rules:
//
//   - A cluster id is made up for one attempt, and only who made it up begins Raft under it, once.
//   - Raft connections are between nodes of one cluster id, which is on disk before the first of them,
//     and stays for ever once Raft has anything on disk.
//
// So at the worst an attempt leads nowhere.

// form is one round of an empty node's search for its cluster.
func (m *membership) form(ctx context.Context) {
	where := m.addresses()
	if len(m.cfg.Join) > 0 || m.cfg.BootstrapExpect > 0 {
		// A node that waits to be added by name asks nobody but who has reserved it: it may have been refused.
		where = slices.Concat(where, m.callers.recent(), m.hearsay)
	}
	seen := m.look(ctx, where)
	m.hearsay = nil
	for _, s := range seen {
		m.hearsay = append(m.hearsay, s.Callers...)
	}
	m.release(seen)
	id := m.papers.read()
	existing, err := formedAmong(seen, id.Cluster)
	switch {
	case err != nil:
		m.say(slog.LevelError, "cannot join", "error", err)
	case existing.Cluster != "":
		m.join(ctx, existing)
	case id.Cluster != "":
		m.log.Debug("reserved for a cluster that is being formed", "cluster", id.Cluster)
	case m.cfg.BootstrapExpect > 0:
		m.gather(ctx, seen)
	default:
		m.say(slog.LevelInfo, "waiting for a cluster to join", "join", m.cfg.Join, "peer_address", m.network.Address())
	}
}

// formedAmong returns a node of the formed cluster that is in sight, preferably one that knows the
// leader. Own is the cluster that this node is reserved for.
func formedAmong(seen []sighting, own string) (sighting, error) {
	var best sighting
	for _, s := range seen {
		switch {
		case !s.Bound || own != "" && s.Cluster != own:
		case best.Cluster != "" && best.Cluster != s.Cluster:
			return sighting{}, fmt.Errorf("the addresses to join belong to different clusters: %s at %s, %s at %s", best.Cluster, best.at, s.Cluster, s.at)
		case best.Leader.Node == "":
			best = s
		}
	}
	return best, nil
}

// release lets go of a reservation that will come to nothing.
func (m *membership) release(seen []sighting) {
	id := m.papers.read()
	if id.Cluster != m.reserved { // what was seen in this round may be older than that
		m.reserved, m.heard = id.Cluster, time.Now()
		return
	}
	if id.Cluster == "" {
		return
	}
	why := m.desertion(id, seen)
	if why == "" {
		return
	}
	if err := m.disengage(id.Cluster); err != nil {
		m.say(slog.LevelError, "the cluster that this node is reserved for is not formed", "cluster", id.Cluster, "why", why, "error", err)
		return
	}
	m.log.Debug("not reserved any more", "cluster", id.Cluster, "why", why)
}

// desertion says why the cluster that this node is reserved for will not be formed, or not with this
// node; empty: it may.
func (m *membership) desertion(id identity, seen []sighting) string {
	founder := place{}
	if id.Founder != nil {
		founder = *id.Founder
	}
	if founder.Node == id.ID {
		return "this node was stopped while it was forming it"
	}
	gone := ""
	for _, s := range seen {
		switch {
		case s.Cluster == id.Cluster && (s.Bound || s.Node == founder.Node):
			m.heard = time.Now()
			return ""
		case s.Node == founder.Node:
			gone = "the founder has given up"
		case s.at == founder.Address || s.Address == founder.Address:
			gone = "the founder has lost its directory"
		}
	}
	if gone == "" && time.Since(m.heard) > m.cfg.patience {
		return "there is no sign of it"
	}
	return gone
}

// gather counts the empty nodes in sight, and founds the cluster where there are enough and this one
// comes first.
func (m *membership) gather(ctx context.Context, seen []sighting) {
	own := m.card()
	empty := []card{own}
	for _, s := range seen {
		switch {
		case s.Bound || s.Expect == 0:
		case s.Expect != own.Expect:
			m.say(slog.LevelError, "nodes disagree on --bootstrap-expect: nothing is formed until they agree", "ours", own.Expect, "theirs", s.Expect, "their_address", s.Address)
			return
		case s.Cluster == "":
			empty = append(empty, s.card)
		}
	}
	if len(empty) < own.Expect {
		m.say(slog.LevelInfo, "waiting for nodes to form a cluster", "expected", own.Expect, "seen", len(empty), "join", m.cfg.Join)
		return
	}
	slices.SortFunc(empty, compareNodes)
	founders := empty[:own.Expect]
	if founders[0].Node != own.Node {
		return
	}
	if err := distinct(founders); err != nil {
		m.say(slog.LevelError, "cannot form a cluster", "error", err)
		return
	}
	if err := m.found(ctx, founders); err != nil {
		m.log.Info("forming a cluster failed; trying again", "error", err)
	}
}

func compareNodes(a, b card) int { return cmp.Compare(a.Node, b.Node) }

// distinct refuses nodes that could not be told apart.
func distinct(nodes []card) error {
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			if a.Address == b.Address {
				return fmt.Errorf("nodes %s and %s both say that they are reached at %s: set --peer-advertise", a.Node, b.Node, a.Address)
			}
			if a.Chosen && b.Chosen && a.Label == b.Label {
				return fmt.Errorf("the nodes at %s and %s are both called %q: give each its own --node-id", a.Address, b.Address, a.Label)
			}
		}
	}
	return nil
}

// found forms a cluster of these nodes, of which this one is the first. When it fails, its id is
// forgotten, and who was reserved for it finds out by asking.
func (m *membership) found(ctx context.Context, founders []card) error {
	cluster := randomID()
	own := place{Node: m.papers.ID, Address: m.network.Address()}
	if err := m.engage(cluster, own); err != nil {
		return err
	}
	if err := m.reserveAll(ctx, cluster, own, founders[1:]); err != nil {
		return errors.Join(err, m.disengage(cluster))
	}
	if err := m.bootstrap(founders); err != nil {
		// Perhaps the log is begun, perhaps it is not: the next start will see.
		m.halt(err)
		return err
	}
	m.log.Info("cluster formed", "cluster", cluster, "nodes", len(founders))
	return nil
}

// engage ties this node, empty and free, to a cluster that is being formed.
func (m *membership) engage(cluster string, founder place) error {
	return m.papers.change(func(id *identity) error {
		switch {
		case id.Removed:
			return errRemoved
		case id.Cluster == cluster:
			return nil
		case m.bound():
			return fmt.Errorf("node %s is not empty: it belongs to cluster %s", id.ID, id.Cluster)
		case id.Cluster != "":
			return fmt.Errorf("node %s is reserved for another cluster (%s)", id.ID, id.Cluster)
		}
		id.Cluster, id.Founder = cluster, &founder
		return nil
	})
}

// disengage undoes engage, as long as nobody has spoken for that cluster.
func (m *membership) disengage(cluster string) error {
	return m.papers.change(func(id *identity) error {
		if id.Cluster == cluster && !m.bound() {
			id.Cluster, id.Founder = "", nil
		}
		return nil
	})
}

func (m *membership) reserveAll(ctx context.Context, cluster string, own place, nodes []card) error {
	for _, node := range nodes {
		q := query{Ask: askReserve, Cluster: cluster, Expect: m.cfg.BootstrapExpect, Founder: own}
		if err := m.reserveAt(ctx, node.Address, node.Node, q); err != nil {
			return err
		}
	}
	return nil
}

// reserveAt reserves the node at an address. It must be reached there, and be the one that is meant.
func (m *membership) reserveAt(ctx context.Context, address, node string, q query) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var c card
	g, err := m.network.Ask(ctx, address, q, &c)
	if err != nil {
		return fmt.Errorf("reserve the node at %s: %w", address, err)
	}
	if node != "" && g.Node != node {
		return fmt.Errorf("node %s says that it is reached at %s, where node %s answers", node, address, g.Node)
	}
	return nil
}

// reserve answers a founder, or a leader that adds this node.
func (m *membership) reserve(q query) (card, error) {
	if q.Cluster == "" || q.Founder.Node == "" {
		return card{}, errors.New("reserve for whom?")
	}
	if q.Expect != 0 && q.Expect != m.cfg.BootstrapExpect {
		return card{}, fmt.Errorf("node %s has --bootstrap-expect %d, not %d", m.papers.ID, m.cfg.BootstrapExpect, q.Expect)
	}
	return m.card(), m.engage(q.Cluster, q.Founder)
}

// bootstrap begins Raft with these nodes as voters.
func (m *membership) bootstrap(founders []card) error {
	var members raft.Configuration
	for _, c := range founders {
		members.Servers = append(members.Servers, raft.Server{ID: raft.ServerID(c.Node), Address: raft.ServerAddress(c.Address)})
	}
	if err := m.raft.BootstrapCluster(members).Error(); err != nil {
		return fmt.Errorf("begin the log: %w", err)
	}
	return nil
}
