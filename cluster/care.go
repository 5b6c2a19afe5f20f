package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// care looks after the membership of a node that belongs to a cluster: once a second or so.
func (m *membership) care(ctx context.Context) {
	if m.settledMember() {
		m.countIn()
	}
	m.refresh(ctx)
	m.saveRoster()
	switch _, leader := m.raft.LeaderWithID(); {
	case m.leading():
		m.lead(ctx)
	case leader == "":
		m.search(ctx)
	default:
		m.confirm(ctx)
	}
	if len(m.cfg.Join) > 0 {
		m.aside(ctx, "cannot look for other clusters", m.avoidForeigners)
	}
}

// lead is what the leader does for the membership.
func (m *membership) lead(ctx context.Context) {
	if own, listed := m.own(); listed && string(own.Address) != m.network.Address() {
		m.aside(ctx, "cannot note this node's address", func(ctx context.Context) error {
			return m.inTurn(ctx, func() error { return m.readdress(ctx, own, m.network.Address()) })
		})
	}
	if _, err := written(m.reads()); err != nil {
		m.say(slog.LevelError, "members cannot read what others write: replace the binaries of those that are too old or too new", "error", err)
		m.aside(ctx, "leadership was not handed over", m.yield)
		return
	}
	m.promote(ctx)
}

// aside makes a change beside the care for the membership, which must not wait for it: one at a time. It
// returns false where another one is under way; the next round will see.
func (m *membership) aside(ctx context.Context, failure string, change func(context.Context) error) bool {
	select {
	case m.beside <- struct{}{}:
	default:
		return false
	}
	m.asides.Go(func() {
		defer func() { <-m.beside }()
		ctx, cancel := context.WithTimeout(ctx, changeTimeout)
		defer cancel()
		m.try(failure, change(ctx))
	})
	return true
}

// yield hands leadership to a voter that more members can follow than this node, if there is one. So it
// goes to and fro between no two nodes, also where nobody can lead all.
func (m *membership) yield(ctx context.Context) error {
	asked := time.Now()
	m.askMembers(ctx) // one that stops says so
	heir := m.betterLeader(asked)
	if heir == "" {
		return nil
	}
	return m.handOver(ctx, heir)
}

func (m *membership) betterLeader(asked time.Time) string {
	known := m.reads()
	best, most := "", followers(known, m.papers.ID)
	for _, s := range m.configuration() {
		heir, able := m.heir(string(s.ID), asked)
		if n := followers(known, string(heir.ID)); able && n > most {
			best, most = string(heir.ID), n
		}
	}
	return best
}

// say logs what an operator has to act on, once in a while.
func (m *membership) say(level slog.Level, message string, args ...any) {
	m.said.Say(level, message, "", args...)
}

func (m *membership) try(what string, err error) {
	if err != nil {
		m.say(slog.LevelWarn, what, "error", err)
	}
}

// standing is what the leader answers to a node that asks whether it is a member.
type standing struct {
	Member  bool `json:"member"`
	Twin    bool `json:"twin"`    // another process lives under the asker's id
	Settled bool `json:"settled"` // no change is under way: it was true for the whole cluster
}

// standing answers for a node that cannot tell by itself, and notes where it is reached now. What is
// answered was true in this cluster, and not only in this node's opinion.
func (m *membership) standing(ctx context.Context, c card) (standing, error) {
	var answer standing
	if own := m.papers.read().Cluster; c.Cluster != own {
		return answer, fmt.Errorf("node %s belongs to cluster %q, not to %s", c.Node, c.Cluster, own)
	}
	err := m.inTurn(ctx, func() error {
		if err := settled(ctx, m.raft.VerifyLeader()); err != nil || !m.leading() {
			return errNotLeader
		}
		s, member := find(m.configuration(), c.Node)
		answer = standing{Member: member, Settled: true}
		if !member || string(s.Address) == c.Address {
			return nil
		}
		if err := m.acquainted(ctx, &c); err != nil {
			return err
		}
		if answer.Twin = m.twin(ctx, s, c); answer.Twin {
			return nil
		}
		return m.readdress(ctx, s, c.Address)
	})
	return answer, err
}

// twin reports whether a member that says it has moved still lives where it was, in another process.
func (m *membership) twin(ctx context.Context, s raft.Server, c card) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var old card
	_, err := m.network.Ask(ctx, string(s.Address), query{Ask: askWho}, &old)
	return err == nil && old.Node == c.Node && old.Life != c.Life
}

// search looks for the cluster when there is no leader: members may have moved, this one may have
// moved, and the cluster may have removed it.
func (m *membership) search(ctx context.Context) {
	cluster := m.papers.read().Cluster
	seen := m.look(ctx, m.addresses())
	for _, s := range seen {
		if s.Cluster == cluster {
			m.meet(s)
			m.relocate(s)
		}
	}
	if leader := m.leaderAmong(seen); leader != "" {
		m.inquire(ctx, leader)
		return
	}
	if m.raft.LastIndex() == 0 && time.Since(m.began) > m.cfg.patience {
		m.say(slog.LevelError, "this node has voted in a cluster of which nothing has arrived: if the nodes that formed it are gone for ever, empty the data directory", "cluster", cluster)
	}
}

// leaderAmong returns where the leader of this node's cluster is, by what others say; empty: they do not
// know, or take this node for it.
func (m *membership) leaderAmong(seen []sighting) string {
	cluster := m.papers.read().Cluster
	hearsay := ""
	for _, s := range seen {
		switch {
		case s.Cluster != cluster:
		case s.Role == "leader":
			return s.at
		case s.Leader.Node != m.papers.ID:
			hearsay = cmp.Or(hearsay, s.Leader.Address)
		}
	}
	return hearsay
}

// relocate notes where a member is reached that is not where the configuration has it.
func (m *membership) relocate(s sighting) {
	if member, ok := find(m.configuration(), s.Node); ok {
		if string(member.Address) == s.Address {
			s.Address = ""
		}
		m.roster.moved(s.Node, s.Address)
	}
}

// inquire asks the leader how this node stands.
func (m *membership) inquire(ctx context.Context, leader string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	own := m.card()
	var answer standing
	if err := m.askOwn(ctx, leader, query{Ask: askStanding, Card: &own}, &answer); err != nil {
		m.say(slog.LevelInfo, "the leader does not know how this node stands", "leader", leader, "error", err)
		return
	}
	switch {
	case answer.Twin:
		m.halt(errTwin)
	case answer.Member:
		m.countIn()
	case answer.Settled && m.papers.read().Member:
		m.leave()
	case answer.Settled:
		// It was never counted on: the leader that had begun to add it was lost.
		_, err := m.ask(ctx, leader, query{Ask: askJoin, Card: &own}, &struct{}{})
		m.try("the cluster does not take this node", err)
	}
}

// confirm asks the leader that this node hears, as long as it does not know that the cluster counts this
// node in, and has it where it is.
func (m *membership) confirm(ctx context.Context) {
	own, _ := m.own()
	if m.papers.read().Member && string(own.Address) == m.network.Address() {
		return
	}
	if leader := m.leaderAddress(ctx); leader != "" {
		m.inquire(ctx, leader)
	}
}

func (m *membership) countIn() {
	m.try("cannot write the identity", m.papers.change(func(id *identity) error {
		id.Member = true
		return nil
	}))
}

// leave stops the node, for ever: the cluster has removed it, and counts without it. Its clients are told.
func (m *membership) leave() {
	err := m.papers.change(func(id *identity) error {
		id.Removed = true
		return nil
	})
	if err != nil {
		m.say(slog.LevelError, "cannot note that this node was removed", "error", err)
	}
	m.stop(errRemoved, m.left)
}

// promote gives a vote to one node that has caught up: twice in a row it had applied, by now, what was
// committed when it was looked at the time before.
func (m *membership) promote(ctx context.Context) {
	mark := m.lastCommit
	m.lastCommit = m.raft.CommitIndex()
	members := m.configuration()
	for _, s := range members {
		c, fresh := m.roster.of(string(s.ID))
		if s.Suffrage == raft.Voter || !fresh || mark == 0 || c.Applied < mark {
			delete(m.caughtUp, string(s.ID))
			continue
		}
		m.caughtUp[string(s.ID)]++
		if m.caughtUp[string(s.ID)] < 2 || !m.healthyWith(members, s) {
			continue
		}
		begun := m.aside(ctx, "cannot give a node its vote", func(ctx context.Context) error {
			return m.inTurn(ctx, func() error { return m.giveVote(ctx, s) })
		})
		if begun {
			delete(m.caughtUp, string(s.ID))
		}
		return
	}
}

func (m *membership) giveVote(ctx context.Context, s raft.Server) error {
	s, member := find(m.configuration(), string(s.ID))
	if !member || s.Suffrage == raft.Voter {
		return nil
	}
	asked := time.Now()
	m.askMembers(ctx) // that it was heard a moment ago is not enough: with the vote of a dead node there may be no majority
	if !m.roster.heardSince(string(s.ID), asked) || !m.healthyWith(m.configuration(), s) {
		return nil
	}
	err := m.alter(ctx, func(patience time.Duration) raft.IndexFuture {
		return m.raft.AddVoter(s.ID, s.Address, 0, patience)
	})
	if err != nil {
		return fmt.Errorf("promote node %s: %w", s.ID, err)
	}
	m.log.Info("node has a vote", "node", string(s.ID), "address", string(s.Address))
	return nil
}

// healthyWith reports whether a majority can be reached once a node has a vote.
func (m *membership) healthyWith(members []raft.Server, added raft.Server) bool {
	voters, live := 1, 1
	for _, s := range members {
		if s.Suffrage != raft.Voter || s.ID == added.ID {
			continue
		}
		voters++
		if m.reachable(s) {
			live++
		}
	}
	return live >= voters/2+1
}

// settledMember says that this node is a member, by a configuration that is decided: before it has a vote,
// the cluster has known it, and a later one has been applied.
func (m *membership) settledMember() bool {
	future := m.raft.GetConfiguration()
	if future.Error() != nil {
		return false
	}
	own, listed := find(future.Configuration().Servers, m.papers.ID)
	return listed && (own.Suffrage == raft.Voter || m.raft.AppliedIndex() >= future.Index())
}
