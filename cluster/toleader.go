package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/semaphore"
)

// What becomes of a change of the members, or of leadership, that is not simply done or refused.
var (
	errOpen     = semaphore.Errorf(semaphore.CodeUncertain, "the outcome is not known: look at SEM.NODE LIST, and repeat the command if nothing has changed")
	errBusy     = semaphore.Errorf(semaphore.CodeDown, "another change of the members is under way; nothing was done: try again")
	errNoLeader = semaphore.Errorf(semaphore.CodeDown, "no leader can be reached; nothing was done")
)

// passing are the errors of a leader that say nothing against what was asked.
func passing() []error { return []error{errNotLeader, errOpen, errBusy, errNoLeader} }

// toLeader puts a question to the leader, which may be this node. While there is no leader it waits, and
// where leadership moves, it follows. What may be asked twice is asked again where the outcome is open,
// because a later leader knows it.
func (m *membership) toLeader(ctx context.Context, q query, answer any) error {
	open := false // an attempt may have done it, or may still
	for {
		err := m.once(ctx, q, answer)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errOpen) && q.Ask == askTransfer && q.Node == "":
			return err // it is said of the leader of that moment
		case errors.Is(err, errOpen):
			open = true
		case errors.Is(err, errNotLeader):
		case open:
			return errOpen
		default:
			return err
		}
		select {
		case <-ctx.Done():
			if open {
				return errOpen
			}
			return errNoLeader
		case <-time.After(m.cfg.ElectionTimeout / 4):
		}
	}
}

// once puts a question to the leader as far as it is known.
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
	var unasked peer.Unasked
	var no *peer.Refused
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unasked):
		return errNotLeader
	case errors.As(err, &no):
		return told(no)
	default: // it was asked, and has not answered
		return errOpen
	}
}

// told is the error that another node has answered.
func told(no *peer.Refused) error {
	for _, known := range passing() {
		if no.Reason == known.Error() {
			return known
		}
	}
	return errors.New(no.Reason)
}

// askOwn puts a question to a node of the own cluster. What a node of another one answers does not count.
func (m *membership) askOwn(ctx context.Context, address string, q query, answer any) error {
	var text json.RawMessage
	q.Cluster = m.papers.read().Cluster
	g, err := m.ask(ctx, address, q, &text)
	switch {
	case g.Node != "" && g.Cluster != q.Cluster:
		return peer.Unasked{Why: fmt.Errorf("a node of cluster %q answers at %s, ours is %s", g.Cluster, address, q.Cluster)}
	case err != nil:
		return err
	}
	return json.Unmarshal(text, answer)
}

// ask puts a question to a node, and says how long it will wait, but for the answer's way back.
func (m *membership) ask(ctx context.Context, address string, q query, answer any) (peer.Greeting, error) {
	if end, bounded := ctx.Deadline(); bounded {
		q.Patience = max(1, time.Until(end).Milliseconds()*9/10)
	}
	return m.network.Ask(ctx, address, q, answer)
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
