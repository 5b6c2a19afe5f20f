package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/semserver/semserver/cluster/peer"
)

// query is what one node asks another. Which fields count depends on what is asked.
type query struct {
	Ask     string `json:"ask"`
	Card    *card  `json:"card,omitempty"`    // who asks
	Cluster string `json:"cluster,omitempty"` // that the question is about
	Expect  int    `json:"expect,omitempty"`
	Founder place  `json:"founder,omitzero"`
	Node    string `json:"node,omitempty"` // an id, a label or an address
	// Patience is how long the asker will wait, in milliseconds; 0: it does not say. What is not begun by
	// then is not to be done.
	Patience int64 `json:"patience,omitempty"`
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

// errNotLeader is the answer of a node that is asked what only the leader knows. It has done nothing.
var errNotLeader = errors.New("not the leader")

// receive answers a peer's question.
func (m *membership) receive(c net.Conn, g peer.Greeting) {
	if g.Node != m.papers.ID {
		m.callers.note(g.Address)
	}
	peer.Answer(c, askTimeout, func(ctx context.Context, text json.RawMessage) (any, error) {
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
		patience := changeTimeout
		if q.Patience > 0 {
			patience = min(patience, time.Duration(q.Patience)*time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		defer context.AfterFunc(m.ctx, cancel)()
		return m.answer(ctx, q)
	})
}

// answer answers a question. An error that others go by is given in its own words alone.
func (m *membership) answer(ctx context.Context, q query) (any, error) {
	reply, err := m.reply(ctx, q)
	for _, known := range passing() {
		if errors.Is(err, known) {
			return nil, known
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
	if own := m.papers.read().Cluster; q.Cluster != "" && q.Cluster != own {
		return nil, fmt.Errorf("this node belongs to cluster %s, not to %s", own, q.Cluster)
	}
	if !m.leading() {
		return nil, errNotLeader
	}
	switch q.Ask {
	case askRoster:
		if !m.oriented.Load() {
			return nil, errNotLeader // in a moment
		}
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
