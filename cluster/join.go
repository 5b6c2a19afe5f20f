package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
)

// join asks the leader of a formed cluster to make this empty node a member. It is asked again until
// Raft has arrived here.
func (m *membership) join(ctx context.Context, existing sighting) {
	err := m.tryJoin(ctx, existing)
	var no *peer.Refused
	switch {
	case err == nil:
		m.log.Debug("joined, waiting for the log", "cluster", existing.Cluster)
	case errors.As(err, &no) && !slices.Contains(passing(), told(no)):
		m.say(slog.LevelError, "the cluster does not take this node", "cluster", existing.Cluster, "reason", no.Reason)
		if err := m.disengage(existing.Cluster); err != nil {
			m.say(slog.LevelError, "cannot leave the cluster that does not take this node", "error", err)
		}
	default:
		m.say(slog.LevelInfo, "waiting for the cluster to take this node", "cluster", existing.Cluster, "error", err)
	}
}

func (m *membership) tryJoin(ctx context.Context, existing sighting) error {
	leader := existing.Leader.Address
	if leader == "" {
		return errors.New("it has no leader now")
	}
	err := m.papers.change(func(id *identity) error {
		if id.Cluster != "" && id.Cluster != existing.Cluster {
			return fmt.Errorf("reserved for cluster %s", id.Cluster)
		}
		id.Cluster = existing.Cluster
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	own := m.card()
	_, err = m.ask(ctx, leader, query{Ask: askJoin, Card: &own}, &struct{}{})
	return err
}

// admitMember makes a node a member without a vote, on the leader. It is asked again and again, also
// for nodes that are members already.
func (m *membership) admitMember(ctx context.Context, c card) error {
	if err := m.acquainted(ctx, &c); err != nil {
		return err
	}
	return m.inTurn(ctx, func() error { return m.admitNow(ctx, c) })
}

func (m *membership) admitNow(ctx context.Context, c card) error {
	if s, member := find(m.configuration(), c.Node); member && m.twin(ctx, s, c) {
		return errTwin
	} else if member {
		return m.readdress(ctx, s, c.Address)
	}
	if c.Counted {
		return errRemoved
	}
	if err := m.understands(c); err != nil {
		return err
	}
	if err := m.makeRoom(ctx, c); err != nil {
		return err
	}
	err := m.alter(ctx, func(patience time.Duration) raft.IndexFuture {
		return m.raft.AddNonvoter(raft.ServerID(c.Node), raft.ServerAddress(c.Address), 0, patience)
	})
	if err != nil {
		return fmt.Errorf("add node %s: %w", c.Node, err)
	}
	m.roster.note(c, time.Now())
	m.log.Info("node added", "node", c.Node, "label", c.Label, "address", c.Address)
	return nil
}

// acquainted calls a node back where it says that it is reached, and brings its card up to date.
func (m *membership) acquainted(ctx context.Context, c *card) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var now card
	if _, err := m.network.Ask(ctx, c.Address, query{Ask: askWho}, &now); err != nil {
		return fmt.Errorf("the leader cannot reach node %s at %s: %w", c.Node, c.Address, err)
	}
	if now.Node != c.Node {
		return fmt.Errorf("node %s says that it is reached at %s, where node %s answers: give each its own --peer-advertise", c.Node, c.Address, now.Node)
	}
	if own := m.papers.read().Cluster; now.Cluster != own {
		return fmt.Errorf("node %s belongs to cluster %q, not to %s", c.Node, now.Cluster, own)
	}
	*c = now
	return nil
}

// makeRoom removes the member that a new node replaces: one whose address the new node has now, or
// whose name it was given. A voter that has lost its disk must go before it comes back as another
// node: what it has acknowledged is forgotten, and must not be counted on.
func (m *membership) makeRoom(ctx context.Context, c card) error {
	for _, s := range m.configuration() {
		known, _ := m.roster.of(string(s.ID))
		namesake := c.Chosen && known.Chosen && known.Label == c.Label
		switch {
		case string(s.Address) == c.Address && m.alive(ctx, s):
			return fmt.Errorf("node %s, which lives elsewhere now, is still noted at %s: try again when that is changed", s.ID, c.Address)
		case string(s.Address) == c.Address: // where the new node was just reached: the old one is gone
		case !namesake:
			continue
		case string(s.ID) == m.papers.ID || m.alive(ctx, s):
			return fmt.Errorf("a live node is called %q already (%s at %s): give each its own --node-id", c.Label, s.ID, s.Address)
		}
		if err := m.expel(ctx, s); err != nil {
			return fmt.Errorf("remove node %s, which node %s replaces: %w", s.ID, c.Node, err)
		}
		m.log.Info("removed a node that another replaces", "node", string(s.ID), "label", known.Label, "replaced_by", c.Node)
	}
	return nil
}

// alive asks a member whether it is there.
func (m *membership) alive(ctx context.Context, s raft.Server) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var c card
	_, err := m.network.Ask(ctx, m.roster.locate(string(s.ID), string(s.Address)), query{Ask: askWho}, &c)
	return err == nil && c.Node == string(s.ID)
}

// readdress writes a member's present address into the configuration.
func (m *membership) readdress(ctx context.Context, s raft.Server, address string) error {
	if string(s.Address) == address {
		return nil
	}
	change := m.raft.AddVoter // it changes nothing but the address of who has a vote
	if s.Suffrage != raft.Voter {
		change = m.raft.AddNonvoter
	}
	err := m.alter(ctx, func(patience time.Duration) raft.IndexFuture {
		return change(s.ID, raft.ServerAddress(address), 0, patience)
	})
	if err != nil {
		return fmt.Errorf("change the address of node %s: %w", s.ID, err)
	}
	if string(s.Address) == string(s.ID) { // without peers it had none
		m.log.Info("node has an address for others", "node", string(s.ID), "address", address)
		return nil
	}
	m.log.Info("node has moved", "node", string(s.ID), "from", string(s.Address), "to", address)
	return nil
}

// add adds the empty node that waits at an address, on the leader, and returns its id.
func (m *membership) add(ctx context.Context, address string) (id string, err error) {
	err = m.inTurn(ctx, func() error {
		c, err := m.reserveFor(ctx, address)
		if err != nil {
			return err
		}
		id = c.Node
		if err = m.acquainted(ctx, &c); err == nil {
			err = m.admitNow(ctx, c)
		}
		for _, known := range passing() {
			if errors.Is(err, known) { // it knows now which cluster wants it, and will ask again
				return errOpen
			}
		}
		return err
	})
	return id, err
}

// reserveFor reserves the empty node at an address for this cluster.
func (m *membership) reserveFor(ctx context.Context, address string) (card, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q := query{
		Ask: askReserve, Cluster: m.papers.read().Cluster,
		Founder: place{Node: m.papers.ID, Address: m.network.Address()},
	}
	var c card
	_, err := m.ask(ctx, address, q, &c)
	var unasked peer.Unasked
	var no *peer.Refused
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &unasked), errors.As(err, &no):
		return card{}, fmt.Errorf("ask the node at %s: %w", address, err)
	default:
		return card{}, errOpen
	}
}

// understands refuses a node that cannot read what the cluster writes.
func (m *membership) understands(c card) error {
	version, err := written(m.reads())
	if err != nil {
		return err
	}
	if version < c.Reads.Oldest || version > c.Reads.Newest {
		return fmt.Errorf("node %s reads versions %d to %d of entries, and this cluster writes %d", c.Node, c.Reads.Oldest, c.Reads.Newest, version)
	}
	return nil
}

// reads returns what each member reads, as far as it is known.
func (m *membership) reads() map[string]versions {
	known := map[string]versions{m.papers.ID: readable()}
	for _, s := range m.configuration() {
		if c, _ := m.roster.of(string(s.ID)); c.Node != "" {
			known[c.Node] = c.Reads
		}
	}
	return known
}
