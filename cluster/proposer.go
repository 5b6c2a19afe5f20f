package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/fsm"
)

const (
	// tickEvery bounds how often an entry is written only because something falls due.
	tickEvery = 5 * time.Millisecond
	// beatEvery is how often an entry is written at least while anything has a deadline. It bounds
	// what a restart can add to a lease.
	beatEvery = time.Second
	// leaderPoll is how often a node that does not lead looks whether it does.
	leaderPoll = 20 * time.Millisecond
)

// consensus is what the proposer needs of raft.Raft.
type consensus interface {
	Apply(data []byte, timeout time.Duration) raft.ApplyFuture
	State() raft.RaftState
	CurrentTerm() uint64
}

// proposer writes entries into the log: the Open of each leadership, batches of requests, and ticks.
// One goroutine does all of it, so that entries enter the log in the order of their stamps.
type proposer struct {
	raft    consensus
	clock   Clock
	queue   *queue
	guests  *guests
	view    func() *view
	grace   time.Duration
	enqueue time.Duration // how long Raft may take to accept an entry
	metrics *Metrics
	log     *slog.Logger

	wake    chan struct{} // capacity 1: look again
	futures atomic.Int64  // that Raft has not answered yet

	mu      sync.Mutex
	lead    *leadership // nil while this node does not lead, or its Open is not applied yet
	opening uint64      // term whose Open is on its way; 0: none

	proposed time.Duration // when the last entry was proposed; run's own
}

// nudge makes the proposer look again soon.
func (p *proposer) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run proposes until ctx ends.
func (p *proposer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		timer.Reset(p.step())
	}
}

// step proposes what can be proposed now, and returns how long to wait for nothing but time.
func (p *proposer) step() time.Duration {
	lead := p.leading()
	if lead == nil {
		p.open()
		return leaderPoll
	}
	for p.batch(lead) {
	}
	return p.untilTick(lead)
}

// leading returns this node's leadership, or nil. Raft may know better by the time it is used: an
// entry that is proposed too late is refused or void.
func (p *proposer) leading() *leadership {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lead == nil || p.raft.State() != raft.Leader || p.raft.CurrentTerm() != p.lead.term {
		return nil
	}
	return p.lead
}

// open proposes an Open when Raft says that this node leads. The term may have changed meanwhile;
// then the entry is void, and the next look finds the right one.
func (p *proposer) open() {
	if p.raft.State() != raft.Leader {
		return
	}
	term := p.raft.CurrentTerm()
	p.mu.Lock()
	busy := p.opening == term
	p.opening = term
	p.mu.Unlock()
	if busy {
		return
	}
	future := p.raft.Apply(fsm.EncodeOpen(fsm.Open{Term: term, Incarnation: p.queue.incarnation}), p.enqueue)
	p.await(func() {
		if err := future.Error(); err == nil && !future.Response().(verdict).void {
			return
		}
		p.mu.Lock()
		if p.opening == term { // the next look, which is soon enough, tries again
			p.opening = 0
		}
		p.mu.Unlock()
	})
}

// opened is told by the state machine that this node's Open took effect, and through which other lives
// of nodes there are waiters.
func (p *proposer) opened(l leadership, waiting []uint64) {
	p.log.Info("leading", "term", l.term)
	p.metrics.leaderships.Inc()
	p.guests.begin(l.term, waiting)
	p.mu.Lock()
	p.lead, p.opening = &l, 0
	p.mu.Unlock()
	p.nudge()
}

// deposed ends leaderships of earlier terms than this one.
func (p *proposer) deposed(term uint64) {
	p.mu.Lock()
	if p.lead != nil && p.lead.term < term {
		p.lead = nil
	}
	p.mu.Unlock()
}

// batch proposes one entry, and reports whether it did.
func (p *proposer) batch(lead *leadership) bool {
	now := p.clock.Monotonic()
	others, lost := p.guests.waiting()
	f := p.queue.take(lead.term, now, others > 0 || lost || p.tickDue(lead, now), others)
	if f == nil {
		return false
	}
	b := fsm.NewBuilder(lead.term)
	f.guests, f.lost = p.guests.take(lead.term)
	p.metrics.lostNodes.Add(float64(len(f.lost)))
	for _, incarnation := range f.lost {
		b.Lost(incarnation, p.grace)
	}
	b.Grow(len(f.section) + size(f.guests))
	b.Attach(f.section)
	for _, s := range f.guests {
		b.Attach(s.data)
	}
	// The stamp is read after the batch is closed: no request in it is younger than its stamp.
	stamp := lead.base.at(p.clock.Monotonic())
	p.proposed = now
	future := p.raft.Apply(b.Seal(stamp, p.clock.Wall().UnixMicro()), p.enqueue)
	p.await(func() { p.follow(f, future) })
	return true
}

// await runs a function that waits for one of Raft's futures. A future that was committed but not
// applied when Raft shut down is never answered, so nothing may wait for these goroutines without an
// end: see answered.
func (p *proposer) await(f func()) {
	p.futures.Add(1)
	go func() {
		defer p.futures.Add(-1)
		f()
	}()
}

// answered reports whether Raft has answered every future so far.
func (p *proposer) answered() bool { return p.futures.Load() == 0 }

// follow learns from Raft when an entry failed. When it succeeded, the state machine has already
// answered for it.
func (p *proposer) follow(f *flight, future raft.ApplyFuture) {
	err := future.Error()
	switch {
	case err == nil && !future.Response().(verdict).void:
		p.queue.landed(f)
	case err == nil, refusedForCertain(err):
		p.deposed(f.term + 1)
		p.queue.again(f, p.clock.Monotonic())
		p.guests.again(f)
	default:
		// Leadership was lost or the disk failed: the entry may still be applied. The log will tell.
		p.log.Warn("outcome of an entry is open", "term", f.term, "requests", len(f.runs), "error", err)
		p.deposed(f.term + 1)
		p.queue.unresolved(f, p.clock.Monotonic())
	}
	p.nudge()
}

// refusedForCertain reports whether an error of Raft's means that an entry will never be applied.
func refusedForCertain(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrEnqueueTimeout) ||
		errors.Is(err, raft.ErrLeadershipTransferInProgress) || errors.Is(err, errNoRoom)
}

// tickDue reports whether an entry is due although nobody asks for anything.
func (p *proposer) tickDue(lead *leadership, now time.Duration) bool {
	v := p.view()
	if _, flying := p.queue.lengths(); flying > 0 || !v.due {
		return false
	}
	since := now - p.proposed
	if v.next <= v.clock { // a portion was cut: the rest follows at once
		return true
	}
	return since >= beatEvery || since >= tickEvery && lead.base.at(now) >= v.next
}

// untilTick returns when to look at the clock again.
func (p *proposer) untilTick(lead *leadership) time.Duration {
	v := p.view()
	if _, flying := p.queue.lengths(); flying > 0 || !v.due {
		return beatEvery // whatever lands, or gives it a deadline, nudges; a change of term does not
	}
	now := p.clock.Monotonic()
	beat := p.proposed + beatEvery - now
	next := max(time.Duration(v.next-lead.base.at(now))*time.Microsecond, p.proposed+tickEvery-now)
	return max(min(beat, next), 100*time.Microsecond)
}
