package cluster

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// machine is the state machine as Raft drives it. Raft calls Apply, Restore and Snapshot from one
// goroutine; what others may see of the state is published after each entry.
type machine struct {
	incarnation uint64
	clock       Clock
	queue       *queue
	waits       *waits
	guests      *guests
	metrics     *Metrics
	opened      func(l leadership, waiting []uint64) // this node's own Open took effect
	deposed     func(term uint64)
	fatal       func(error)
	progress    func() // something was applied: there may be room in flight, or a deadline moved

	state *fsm.State
	// last is the state machine's clock and the moment at which this node applied the entry that set
	// it. The two are set together: whoever replays a log or installs a snapshot has seen no time pass.
	last reading
	// shown is the youngest ticket of this node's that the log has shown.
	shown uint64

	// telling keeps what the log and what the leader tell apart: a request joins the line before its
	// wait ends. It is held around the locks of the queue and of the waits.
	telling sync.Mutex

	published atomic.Pointer[view]
	logged    atomic.Int64 // bytes of entries applied since the last snapshot was begun
	entries   atomic.Int64 // and their number
}

// view is what the rest of the node may know of the state machine.
type view struct {
	clock fsm.Time
	next  fsm.Time // when something falls due
	due   bool     // whether anything ever does
	stats fsm.Stats
}

// verdict is what Raft's future carries back to the proposer.
type verdict struct{ void bool }

func (m *machine) start() {
	m.state = fsm.New()
	m.last = reading{clock: m.state.Now(), seen: m.clock.Monotonic()}
	m.publish()
}

// Apply implements raft.FSM.
func (m *machine) Apply(l *raft.Log) any {
	return m.apply(l.Data, l.Term)
}

// ApplyBatch implements raft.BatchingFSM. Raft hands over changes of configuration as well; they are
// not ours.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	results := make([]any, len(logs))
	for i, l := range logs {
		if l.Type == raft.LogCommand {
			results[i] = m.apply(l.Data, l.Term)
		}
	}
	return results
}

func (m *machine) apply(data []byte, term uint64) verdict {
	before := m.last
	out, err := m.state.Apply(data, term, m.wanted)
	if err != nil {
		m.fatal(fmt.Errorf("an entry of term %d in the log cannot be applied: %w", term, err))
	}
	now := m.clock.Monotonic()
	m.logged.Add(int64(len(data)))
	m.entries.Add(1)
	switch {
	case out.Void:
		m.metrics.voids.Inc()
	case out.Open != nil:
		m.open(*out.Open, before, now)
	default:
		m.last = reading{clock: m.state.Now(), seen: now}
	}
	m.publish()
	m.deliver(out, now)
	m.progress()
	return verdict{void: out.Void}
}

func (m *machine) wanted(incarnation uint64) bool {
	return incarnation == m.incarnation || m.guests.attached(incarnation)
}

func (m *machine) own(incarnation uint64) bool { return incarnation == m.incarnation }

// open starts this node's leadership, or ends it when the Open is another node's.
func (m *machine) open(o fsm.Open, before reading, now time.Duration) {
	m.queue.opened(o.Term, now)
	if o.Incarnation != m.incarnation {
		m.deposed(o.Term)
		return
	}
	waiting := slices.DeleteFunc(m.state.Waiting(), m.own)
	m.opened(leadership{term: o.Term, base: reading{clock: before.at(now), seen: now}}, waiting)
}

// deliver tells this node's clients, and the guests, what became of their requests. An entry's outcome is
// what the log says, whatever Raft's future says.
func (m *machine) deliver(out fsm.Outcome, now time.Duration) {
	m.telling.Lock()
	if slices.ContainsFunc(out.Lost, m.own) {
		m.waits.givenUp(m.shown)
	}
	for _, s := range out.Sections {
		if m.own(s.Incarnation) {
			m.shown = max(m.shown, s.First+uint64(len(s.Replies))-1)
			m.replies(s, now)
		}
	}
	for _, e := range out.Events {
		if m.own(e.Ticket.Incarnation) {
			m.waits.end(e)
		}
	}
	m.telling.Unlock()
	m.guests.tell(out, m.incarnation)
}

// replied is told by the leader what became of a section, most often before the log tells.
func (m *machine) replied(s fsm.Section) error {
	m.telling.Lock()
	defer m.telling.Unlock()
	if !m.queue.expects(s.First, len(s.Replies)) {
		return errMalformed
	}
	m.replies(s, m.clock.Monotonic())
	return nil
}

// ended is told by the leader how waits ended.
func (m *machine) ended(events []fsm.Event) {
	m.telling.Lock()
	defer m.telling.Unlock()
	for _, e := range events {
		m.waits.end(e)
	}
}

func (m *machine) replies(s fsm.Section, now time.Duration) {
	f := m.queue.applied(s.First)
	if f == nil {
		return // told before, or proposed before this process began
	}
	m.metrics.commit.Observe((now - f.born).Seconds())
	m.answer(f, s.Replies)
}

func (m *machine) answer(f *flight, replies []semaphore.Reply) {
	ticket := semaphore.Ticket{Incarnation: m.incarnation, Number: f.first}
	for _, r := range f.runs {
		n := len(r.requests)
		r.replies, replies = replies[:n:n], replies[n:]
		switch r.state.Load() {
		case pending:
			m.join(r, ticket)
			r.settle(answered)
		case abandoned:
			m.cleanUp(r, ticket)
		case internal:
			if r.again != nil {
				m.waits.arrive(r, ticket, r.replies[0])
			}
		}
		ticket.Number += uint64(n)
	}
}

// join makes the last request of a run wait, if it stands in line. first is the run's first ticket.
func (m *machine) join(r *run, first semaphore.Ticket) {
	last := len(r.replies) - 1
	if _, inLine := r.replies[last].Value.(fsm.InLine); !inLine {
		return
	}
	first.Number += uint64(last)
	a, ok := r.requests[last].(semaphore.Acquire)
	if !ok {
		m.fatal(fmt.Errorf("a %T is said to stand in line", r.requests[last]))
	}
	r.replies[last].Value = m.waits.join(first, a, r.arrived+a.Wait)
}

// cleanUp looks after the outcome of requests whose client was told that it is not known: what the
// client does not repeat within the grace is given back.
func (m *machine) cleanUp(r *run, ticket semaphore.Ticket) {
	for i, reply := range r.replies {
		switch v := reply.Value.(type) {
		case *semaphore.Grant:
			if !v.Replayed {
				m.waits.later(giveBack(r.kept[i].Semaphore(), v))
			}
		case fsm.InLine:
			m.waits.joinDeaf(ticket, r.kept[i].(semaphore.Acquire))
		}
		ticket.Number++
	}
}

func (m *machine) publish() {
	next, due := m.state.Next()
	m.published.Store(&view{clock: m.state.Now(), next: next, due: due, stats: m.state.Stats()})
}

// Snapshot implements raft.FSM. It returns at once; writing runs beside Apply.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.logged.Store(0)
	m.entries.Store(0)
	return snapshot{m.state.Snapshot(), m.metrics}, nil
}

// Restore implements raft.FSM.
func (m *machine) Restore(r io.ReadCloser) error {
	defer r.Close()
	state, err := fsm.Restore(r)
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	m.state = state
	m.last = reading{clock: state.Now(), seen: m.clock.Monotonic()}
	m.queue.skipped(m.last.seen)
	m.waits.hidden()
	m.publish()
	return nil
}

type snapshot struct {
	*fsm.Snapshot
	metrics *Metrics
}

// Persist implements raft.FSMSnapshot.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	began := time.Now()
	size, err := s.WriteTo(sink)
	if err != nil {
		return fmt.Errorf("write snapshot: %w", joinCancel(err, sink))
	}
	s.metrics.snapshotSeconds.Observe(time.Since(began).Seconds())
	s.metrics.snapshotBytes.Set(float64(size))
	return sink.Close()
}

func joinCancel(err error, sink raft.SnapshotSink) error {
	if cancelErr := sink.Cancel(); cancelErr != nil {
		return fmt.Errorf("%w; cancel: %w", err, cancelErr)
	}
	return err
}
