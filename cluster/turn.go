package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// turn lets one change of the members be made at a time.
type turn struct {
	taken chan struct{} // has room for one
	// under is closed when Raft has decided the change that it was given last; nil: there was none. It
	// belongs to whoever has the turn.
	under chan struct{}
}

func newTurn() *turn { return &turn{taken: make(chan struct{}, 1)} }

// inTurn makes a change when it is its turn and the one before is decided. One that has become too old by
// then is dropped.
func (m *membership) inTurn(ctx context.Context, change func() error) error {
	select {
	case m.turn.taken <- struct{}{}:
	case <-ctx.Done():
		return errBusy
	}
	defer func() { <-m.turn.taken }()
	if m.turn.under != nil {
		select {
		case <-m.turn.under:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return errBusy
	}
	return change()
}

// alter gives Raft a change of the configuration, which is made in turn, and waits for it. Whoever cannot
// wait any longer learns that the outcome is open; the next in turn waits on, for until it is decided nobody
// may be told that it is.
func (m *membership) alter(ctx context.Context, begin func(patience time.Duration) raft.IndexFuture) error {
	if ctx.Err() != nil {
		return errBusy
	}
	patience := changeTimeout
	if end, bounded := ctx.Deadline(); bounded {
		patience = max(time.Millisecond, time.Until(end))
	}
	future, decided := begin(patience), make(chan struct{})
	m.turn.under = decided
	var err error
	go func() {
		defer close(decided)
		err = future.Error()
	}()
	select {
	case <-decided:
		return m.outcome(err)
	case <-ctx.Done():
		return errOpen
	}
}

// outcome says what an error of Raft's tells of a change. What Raft refuses it has not begun; a leader that
// does not lead any more may have begun it.
func (m *membership) outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return errBusy
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return errNotLeader
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown), m.raft.State() != raft.Leader:
		return errOpen
	}
	return err
}
