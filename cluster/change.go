package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// errAlone answers what makes sense only among several nodes.
var errAlone = errors.New("this node has no peers: start it with --peer-listen")

// Add, Remove and Transfer can be asked of any node, and end soon after Config.Hold. A *semaphore.Error of
// theirs says that the outcome is not known (CodeUncertain), or that for want of a leader, or of a turn,
// certainly nothing was done (CodeDown); any other error is a refusal. All may be repeated.

// Add adds the empty node that waits at a peer address to the cluster, and returns its id. It becomes a
// voter by itself when it has caught up.
func (n *Node) Add(address string) (string, error) {
	var id string
	err := n.change(query{Ask: askAdd, Node: address}, &id)
	if err == nil { // whoever asks this node next finds it described
		n.membership.refresh(n.membership.ctx)
	}
	return id, err
}

// Remove removes a member, which is given by its id, or by its label where only one has it. It reports
// whether there was such a member. What would leave the cluster without a majority that can be reached
// is refused. A leader that is to be removed hands over first.
func (n *Node) Remove(node string) (bool, error) {
	if n.membership == nil {
		return false, errAlone
	}
	_, unknown := n.membership.member(node)
	var removed bool
	err := n.change(query{Ask: askRemove, Node: node}, &removed)
	// A leader that was lost over it may have removed it all the same, and the next one finds it gone.
	return err == nil && (removed || unknown == nil), err
}

// Transfer hands leadership to a voter, which is given by id or label; empty: to the one that is
// furthest. It returns when that node leads.
func (n *Node) Transfer(node string) error {
	return n.change(query{Ask: askTransfer, Node: node}, &struct{}{})
}

func (n *Node) change(q query, answer any) error {
	if n.membership == nil {
		return errAlone
	}
	// Once there is a leader, it may have to ask a member that does not answer.
	ctx, cancel := context.WithTimeout(n.membership.ctx, n.cfg.Hold+askTimeout)
	defer cancel()
	return n.membership.toLeader(ctx, q, answer)
}

// HandOver gives leadership to another voter, if this node leads and any other can be reached. It
// returns when that is done, or could not be done for a while. It is for a node that stops: the others
// do not hand leadership to it any more.
func (n *Node) HandOver() {
	if n.membership == nil {
		return
	}
	n.membership.leaving.Store(true)
	if n.raft.State() != raft.Leader {
		return
	}
	ctx, cancel := context.WithTimeout(n.membership.ctx, drainTimeout)
	defer cancel()
	if err := n.membership.handOver(ctx, ""); err != nil && !errors.Is(err, errNoHeir) {
		n.cfg.Logger.Warn("leadership was not handed over: the others elect a leader when they miss this one", "error", err)
	}
}

// member finds a member by id, or by label where only one has it.
func (m *membership) member(node string) (raft.Server, error) {
	members := m.configuration()
	if s, ok := find(members, node); ok {
		return s, nil
	}
	var found []raft.Server
	var ids []string
	for _, s := range members {
		if c, _ := m.roster.of(string(s.ID)); c.Node != "" && c.Label == node {
			found = append(found, s)
			ids = append(ids, string(s.ID))
		}
	}
	switch len(found) {
	case 0:
		return raft.Server{}, errNoMember
	case 1:
		return found[0], nil
	}
	return raft.Server{}, fmt.Errorf("several nodes are called %q: %s", node, strings.Join(ids, ", "))
}

var (
	errNoMember = errors.New("no such member")
	errNoHeir   = errors.New("no other voter can be reached")
)

// remove removes a member, on the leader.
func (m *membership) remove(ctx context.Context, node string) (bool, error) {
	m.survey(ctx)
	s, err := m.member(node)
	if errors.Is(err, errNoMember) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if string(s.ID) != m.papers.ID {
		if err := m.awaitCounted(ctx, s); err != nil {
			return false, err
		}
		return true, m.inTurn(ctx, func() error { return m.expel(ctx, s) })
	}
	m.countIn()
	if err := m.handOver(ctx, ""); err != nil {
		return false, fmt.Errorf("hand over before the leader is removed: %w", err)
	}
	var removed bool
	err = m.toLeader(ctx, query{Ask: askRemove, Node: string(s.ID)}, &removed)
	return removed, err
}

// awaitCounted waits until a member that can be reached has noted that the cluster counts it in, which it
// does soon after it was added. Removed before that, it would take itself for one that never was, and join.
func (m *membership) awaitCounted(ctx context.Context, s raft.Server) error {
	for {
		c, _ := m.roster.of(string(s.ID))
		if c.Counted || !m.reachable(s) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errBusy
		case <-time.After(m.cfg.ElectionTimeout / 4):
		}
		m.askMembers(ctx)
	}
}

// expel takes a member out of the configuration, unless the cluster could not go on without it.
func (m *membership) expel(ctx context.Context, s raft.Server) error {
	asked := time.Now()
	m.askMembers(ctx) // that one was heard a moment ago is not enough here
	voters, live := 0, 0
	for _, other := range m.configuration() {
		if other.ID == s.ID || other.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(other.ID) == m.papers.ID || m.roster.heardSince(string(other.ID), asked) {
			live++
		}
	}
	if live < voters/2+1 {
		return fmt.Errorf("without node %s, %d of %d voters could be reached: too few to decide anything", s.ID, live, voters)
	}
	err := m.alter(ctx, func(patience time.Duration) raft.IndexFuture {
		return m.raft.RemoveServer(s.ID, 0, patience)
	})
	if err != nil {
		return fmt.Errorf("remove node %s: %w", s.ID, err)
	}
	m.log.Info("node removed", "node", string(s.ID), "address", string(s.Address))
	return nil
}

// survey asks the members that were not heard a moment ago: a new leader has not asked anybody yet.
func (m *membership) survey(ctx context.Context) {
	for _, s := range m.configuration() {
		if !m.reachable(s) {
			m.askMembers(ctx)
			return
		}
	}
}

// reachable reports whether a member was heard a moment ago.
func (m *membership) reachable(s raft.Server) bool {
	_, fresh := m.roster.of(string(s.ID))
	return fresh || string(s.ID) == m.papers.ID
}

// transfer hands leadership over, on the leader.
func (m *membership) transfer(ctx context.Context, node string) error {
	if node == "" {
		return m.handOver(ctx, "")
	}
	m.survey(ctx)
	s, err := m.member(node)
	switch {
	case errors.Is(err, errNoMember):
		return fmt.Errorf("no member is called %q", node)
	case err != nil:
		return err
	case string(s.ID) == m.papers.ID:
		return nil
	case s.Suffrage != raft.Voter:
		return fmt.Errorf("node %s has no vote yet", s.ID)
	case !m.reachable(s):
		return fmt.Errorf("node %s cannot be reached", s.ID)
	}
	return m.handOver(ctx, string(s.ID))
}

// handOver makes another voter the leader: the one with this id, or any. It is tried until ctx ends:
// Raft gives up early where the other is a little behind, and this node may be elected once more.
func (m *membership) handOver(ctx context.Context, to string) error {
	for tried := false; ; tried = true {
		asked := time.Now()
		m.askMembers(ctx)
		heir, ok := m.heir(to, asked)
		switch {
		case !ok && tried: // the one that was asked may yet take over
			return errOpen
		case !ok:
			return errNoHeir
		}
		err := settled(ctx, m.raft.LeadershipTransferToServer(heir.ID, heir.Address))
		if m.raft.State() != raft.Leader {
			err = m.succeeded(ctx, heir, to != "")
		}
		if !errors.Is(err, errStillLeading) && m.raft.State() != raft.Leader {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("hand over to node %s: %w", heir.ID, errors.Join(errOpen, err))
		case <-time.After(m.cfg.ElectionTimeout / 4):
		}
	}
}

var errStillLeading = errors.New("this node was elected again")

// succeeded waits until another node leads: the heir, where nobody else will do.
func (m *membership) succeeded(ctx context.Context, heir raft.Server, exactly bool) error {
	for {
		_, leader := m.raft.LeaderWithID()
		switch {
		case string(leader) == m.papers.ID:
			return errStillLeading
		case leader == heir.ID, !exactly && leader != "":
			return nil
		case leader != "":
			return fmt.Errorf("node %s was elected in place of node %s", leader, heir.ID)
		}
		select {
		case <-ctx.Done():
			return errOpen
		case <-time.After(m.cfg.ElectionTimeout / 8):
		}
	}
}

// heir chooses who is to lead next: the voter that was heard since then and is furthest.
func (m *membership) heir(id string, since time.Time) (raft.Server, bool) {
	var best raft.Server
	var furthest uint64
	for _, s := range m.configuration() {
		if s.Suffrage != raft.Voter || string(s.ID) == m.papers.ID || id != "" && string(s.ID) != id {
			continue
		}
		if c, _ := m.roster.of(string(s.ID)); m.roster.heardSince(string(s.ID), since) && !c.Leaving && (best.ID == "" || c.Applied > furthest) {
			best, furthest = s, c.Applied
		}
	}
	return best, best.ID != ""
}
