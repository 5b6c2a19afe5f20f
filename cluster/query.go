package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
)

// query is what one node asks another. Which fields count depends on what is asked.
type query struct {
	Ask     string `json:"ask"`
	Card    *card  `json:"card,omitempty"`    // who asks
	Cluster string `json:"cluster,omitempty"` // the cluster to be reserved for
	Expect  int    `json:"expect,omitempty"`
	Founder place  `json:"founder,omitzero"`
	Node    string `json:"node,omitempty"` // an id, a label or an address
}

// The questions.
const (
	askWho      = "who"      // -> card
	askReserve  = "reserve"  // an empty node, for a cluster that is being formed -> card
	askJoin     = "join"     // the leader, to be made a member -> struct{}
	askStanding = "standing" // the leader, whether the asker is a member -> standing
	askRoster   = "roster"   // the leader, what it knows of the members -> []entry
	askAdd      = "add"      // the leader, to add the empty node at an address -> string, its id
	askRemove   = "remove"   // the leader -> bool, whether there was such a member
	askTransfer = "transfer" // the leader, to hand over -> struct{}
)

// errNotLeader is the answer of a node that is asked what only the leader knows.
var errNotLeader = errors.New("not the leader")

// receive answers a peer's question.
func (m *membership) receive(c net.Conn, g peer.Greeting) {
	if g.Node != m.papers.ID {
		m.callers.note(g.Address)
	}
	peer.Answer(c, askTimeout, func(text json.RawMessage) (any, error) {
		var q query
		if err := json.Unmarshal(text, &q); err != nil {
			return nil, fmt.Errorf("read question: %w", err)
		}
		if q.Ask == askWho {
			return m.card(), nil
		}
		select {
		case <-m.running:
		case <-m.ctx.Done():
			return nil, errors.New("the node stops")
		}
		ctx, cancel := context.WithTimeout(m.ctx, changeTimeout)
		defer cancel()
		return m.answer(ctx, q)
	})
}

// answer answers a question. That leadership was lost on the way means: ask who leads now. All that may
// be asked may be asked again.
func (m *membership) answer(ctx context.Context, q query) (any, error) {
	reply, err := m.reply(ctx, q)
	for _, lost := range []error{
		errNotLeader, raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress,
	} {
		if errors.Is(err, lost) {
			return nil, errNotLeader
		}
	}
	return reply, err
}

func (m *membership) reply(ctx context.Context, q query) (any, error) {
	switch q.Ask {
	case askWho:
		return m.card(), nil
	case askReserve:
		return m.reserve(q)
	}
	if !m.leading() {
		return nil, errNotLeader
	}
	switch q.Ask {
	case askRoster:
		return m.roster.all(), nil
	case askAdd:
		return m.add(ctx, q.Node)
	case askRemove:
		return m.remove(ctx, q.Node)
	case askTransfer:
		return struct{}{}, m.transfer(ctx, q.Node)
	}
	if q.Card == nil {
		return nil, errors.New("who asks?")
	}
	switch q.Ask {
	case askJoin:
		return struct{}{}, m.admitMember(ctx, *q.Card)
	case askStanding:
		return m.standing(ctx, *q.Card)
	}
	return nil, fmt.Errorf("unknown question %q: the asker is of another version", q.Ask)
}

// toLeader puts a question to the leader, which may be this node. While there is no leader it waits,
// and where leadership moves, it follows.
func (m *membership) toLeader(ctx context.Context, q query, answer any) error {
	for {
		err := m.once(ctx, q, answer)
		if err == nil || !errors.Is(err, errNotLeader) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("no leader can be reached")
		case <-m.ctx.Done():
			return errors.New("the node stops")
		case <-time.After(m.cfg.ElectionTimeout / 4):
		}
	}
}

func (m *membership) once(ctx context.Context, q query, answer any) error {
	if m.leading() {
		reply, err := m.answer(ctx, q)
		if err != nil {
			return err
		}
		return copyAnswer(reply, answer)
	}
	address := m.leaderAddress(ctx)
	if address == "" {
		return errNotLeader
	}
	err := m.askOwn(ctx, address, q, answer)
	var no *peer.Refused
	if errors.As(err, &no) {
		if no.Reason == errNotLeader.Error() {
			return errNotLeader
		}
		return errors.New(no.Reason)
	}
	var dialing *net.OpError
	if errors.As(err, &dialing) && dialing.Op == "dial" { // it did not hear the question
		return errNotLeader
	}
	return err
}

// askOwn puts a question to a node of the own cluster. What a node of another one answers does not count.
func (m *membership) askOwn(ctx context.Context, address string, q query, answer any) error {
	var text json.RawMessage
	g, err := m.network.Ask(ctx, address, q, &text)
	if err != nil {
		return err
	}
	if own := m.papers.read().Cluster; g.Cluster != own {
		return fmt.Errorf("a node of cluster %q answers at %s, ours is %s", g.Cluster, address, own)
	}
	return json.Unmarshal(text, answer)
}

// leaderAddress returns where the leader is reached; empty: nobody knows of one. A node that was removed
// does not hear the leader any more, so it asks the others.
func (m *membership) leaderAddress(ctx context.Context) string {
	address, id := m.raft.LeaderWithID()
	switch {
	case string(id) == m.papers.ID:
		return ""
	case id != "":
		return m.roster.locate(string(id), string(address))
	}
	return m.leaderAmong(m.look(ctx, m.addresses()))
}

// copyAnswer gives an answer of this node the form that it has when it has travelled.
func copyAnswer(reply, answer any) error {
	text, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return json.Unmarshal(text, answer)
}
