package cluster

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// simulation is a cluster without network and disk: its nodes apply one agreed log, each at its own
// pace, on monotonic clocks that run at slightly different rates and wall clocks that show anything.
// The proposer and the machine are the real ones.
type simulation struct {
	t      *rapid.T
	now    time.Duration // real time
	log    []*simEntry   // committed
	nodes  []*simNode
	term   uint64
	leader *simNode // whom Raft would call leader
	leases []*simLease
	keys   int
	open   []*question
	// delays are the spans in which the cluster's clock may have stood still.
	delays []span
}

type span struct{ from, to time.Duration }

type simEntry struct {
	term     uint64
	data     []byte
	proposed time.Duration // real time
	future   *simFuture
}

// simLease is a grant as an outside observer timed it.
type simLease struct {
	key     string
	length  time.Duration
	granted time.Duration // real time of the proposal: the grant is not older
	ended   bool
}

type simNode struct {
	sim         *simulation
	name        int
	rate        float64 // of its monotonic clock, within 0.5 % of real time
	offset      time.Duration
	wall        time.Duration // how wrong its wall clock is
	leads       bool          // what Raft has told it
	slips       bool          // it loses and regains leadership just before its next proposal
	term        uint64
	uncommitted []*simEntry
	applied     int
	m           *machine
	p           *proposer
}

type simFuture struct {
	done   chan struct{}
	err    error
	answer any
}

func (f *simFuture) Error() error  { <-f.done; return f.err }
func (f *simFuture) Response() any { return f.answer }
func (f *simFuture) Index() uint64 { return 0 }

func (f *simFuture) resolve(answer any, err error) {
	f.answer, f.err = answer, err
	close(f.done)
}

// The node's view of Raft.

func (n *simNode) State() raft.RaftState {
	if n.leads {
		return raft.Leader
	}
	return raft.Follower
}

func (n *simNode) CurrentTerm() uint64 { return n.term }

func (n *simNode) Apply(data []byte, _ time.Duration) raft.ApplyFuture {
	f := &simFuture{done: make(chan struct{})}
	if !n.leads {
		f.resolve(nil, raft.ErrNotLeader)
		return f
	}
	if n.slips {
		n.slips = false
		n.sim.term += 2
		n.term = n.sim.term
	}
	n.uncommitted = append(n.uncommitted, &simEntry{term: n.term, data: data, proposed: n.sim.now, future: f})
	return f
}

func (n *simNode) clock() Clock {
	return Clock{
		Monotonic: func() time.Duration { return n.offset + time.Duration(float64(n.sim.now)*n.rate) },
		Wall:      func() time.Time { return time.Unix(1.8e9, 0).Add(n.sim.now + n.wall) },
	}
}

// start gives the node a new life with nothing in memory.
func (n *simNode) start() {
	cfg := DefaultConfig()
	cfg.Clock, cfg.Logger, cfg.Metrics = n.clock(), slog.New(slog.NewTextHandler(io.Discard, nil)), NewMetrics(prometheus.NewRegistry())
	node := assemble(cfg, identity{ID: fmt.Sprint(n.name)}, nil)
	node.proposer.raft = n
	n.m, n.p, n.applied = node.machine, node.proposer, 0
}

// settle waits until the goroutines that follow futures have nothing left to do.
func (n *simNode) settle(open int64) {
	for n.p.futures.Load() > open {
		runtime.Gosched()
	}
}

func (n *simNode) open() int64 {
	var open int64
	for _, e := range n.sim.log[min(n.applied, len(n.sim.log)):] {
		if e.future != nil && e.future.err == nil && n.owns(e) {
			open++
		}
	}
	return open + int64(len(n.uncommitted))
}

func (n *simNode) owns(e *simEntry) bool { return e.future != nil && e.term == n.term && n.leads }

// apply applies up to count entries of the committed log.
func (n *simNode) apply(count int) {
	for ; count > 0 && n.applied < len(n.sim.log); count-- {
		e := n.sim.log[n.applied]
		n.applied++
		v := n.m.apply(e.data, e.term)
		if e.future != nil && n.owns(e) {
			f := e.future
			e.future = nil
			f.resolve(v, nil)
			n.settle(n.open())
		}
	}
}

func (s *simulation) commit() {
	if s.leader == nil {
		return
	}
	s.log = append(s.log, s.leader.uncommitted...)
	s.leader.uncommitted = nil
}

// elect moves leadership. Of what the former leader had not committed, the first entries may be in
// the log of the new one, which then commits them, late and under their old term.
func (s *simulation) elect(to *simNode, survive int) {
	if old := s.leader; old != nil {
		kept := old.uncommitted[:min(survive, len(old.uncommitted))]
		if old == to {
			kept = old.uncommitted // its own log is still its own
		}
		lost := old.uncommitted[len(kept):]
		old.uncommitted = nil
		for _, e := range append(kept[:len(kept):len(kept)], lost...) {
			e.future.resolve(nil, raft.ErrLeadershipLost)
		}
		for _, e := range s.log[min(old.applied, len(s.log)):] {
			if e.future != nil {
				e.future.resolve(nil, raft.ErrLeadershipLost)
				e.future = nil
			}
		}
		for _, e := range kept {
			e.future = nil
		}
		s.log = append(s.log, kept...)
		old.leads = false
		old.settle(0)
	}
	s.term++
	s.leader = to
	if to != nil {
		to.term, to.leads = s.term, true
	}
}

// pass lets time go by as it does on idle nodes: the leader is looked after when it wants to be.
func (s *simulation) pass(d time.Duration) {
	end := s.now + d
	for s.now < end {
		step := end - s.now
		if s.leader != nil {
			step = min(step, s.leader.p.step())
			s.commit()
			for _, n := range s.nodes {
				if n == s.leader {
					n.apply(math.MaxInt)
				}
			}
			if len(s.leader.p.wake) > 0 {
				<-s.leader.p.wake
				step = min(step, 50*time.Microsecond)
			}
		}
		s.now += max(step, 50*time.Microsecond)
	}
}

// stable makes the leader able to decide, and notes for how long the cluster's clock may have stood.
func (s *simulation) stable() {
	if s.leader == nil {
		s.elect(s.nodes[rapid.IntRange(0, len(s.nodes)-1).Draw(s.t, "elected")], 0)
	}
	for range 1000 {
		if s.leader.p.leading() != nil && s.leader.p.leading().term == s.term {
			s.closeDelay()
			return
		}
		s.pass(time.Millisecond)
	}
	s.t.Fatal("no leadership although nothing is in its way")
}

func (s *simulation) openDelay() {
	if len(s.delays) == 0 || s.delays[len(s.delays)-1].to != 0 {
		// Entries are written at least once a second while anything has a deadline: what came after
		// the last one is not known to whoever takes over.
		s.delays = append(s.delays, span{from: s.now - time.Second})
	}
}

func (s *simulation) closeDelay() {
	if len(s.delays) > 0 && s.delays[len(s.delays)-1].to == 0 {
		s.delays[len(s.delays)-1].to = s.now
	}
}

// ask proposes requests at the leader and returns the run with its replies, or nil when there is none.
func (s *simulation) ask(requests ...semaphore.Request) (*run, time.Duration) {
	s.stable()
	r := newRun(requests, s.leader.clock().Monotonic())
	s.leader.m.queue.add(r)
	began := s.now
	for range 1000 {
		if r.state.Load() == answered {
			return r, began
		}
		s.pass(100 * time.Microsecond)
	}
	s.t.Fatal("a request was not decided although there is a leader")
	return nil, 0
}

func (s *simulation) key() string {
	s.keys++
	return fmt.Sprint("k", s.keys)
}

func (s *simulation) acquire() {
	l := &simLease{key: s.key(), length: rapid.SampledFrom([]time.Duration{
		50 * time.Millisecond, 700 * time.Millisecond, 5 * time.Second, 30 * time.Second, time.Hour}).Draw(s.t, "lease")}
	s.stable()
	r, began := s.ask(semaphore.Acquire{Key: l.key, Holder: "h", Permits: 1, Lease: l.length, Create: true, Capacity: 1})
	if _, ok := r.replies[0].Value.(*semaphore.Grant); !ok {
		s.t.Fatalf("acquire: got %v, want a grant", r.replies[0])
	}
	l.granted = began
	s.leases = append(s.leases, l)
}

// check asks for every lease whether it is live, and compares with real time.
func (s *simulation) check() {
	var requests []semaphore.Request
	var asked []*simLease
	for _, l := range s.leases {
		if !l.ended {
			requests, asked = append(requests, semaphore.Inspect{Key: l.key}), append(asked, l)
		}
	}
	if len(asked) == 0 {
		return
	}
	r, began := s.ask(requests...)
	for i, l := range asked {
		live := r.replies[i].Value.(*semaphore.Info).Holders == 1
		l.ended = !live
		// The rate of a clock is trusted to 1 %.
		if earliest := l.granted + l.length - l.length/100; !live && s.now < earliest {
			s.t.Fatalf("lease of %v ended %v early", l.length, earliest-s.now)
		}
		if latest := s.latest(l); live && began > latest {
			s.t.Fatalf("lease of %v is live %v after the latest moment allowed; stood still: %v", l.length, began-latest, s.delays)
		}
	}
}

// latest is when the lease has to be over: its length, the slack, and the time without a leader.
func (s *simulation) latest(l *simLease) time.Duration {
	end := l.granted + l.length + l.length/100 + 100*time.Millisecond
	for _, d := range s.delays {
		if d.to > l.granted && d.from < end {
			end += d.to - max(d.from, l.granted)
		}
	}
	return end
}

func (s *simulation) actions() map[string]func(*rapid.T) {
	node := func(t *rapid.T) *simNode { return s.nodes[rapid.IntRange(0, len(s.nodes)-1).Draw(t, "node")] }
	return map[string]func(*rapid.T){
		"": func(t *rapid.T) { s.t = t },
		"acquire": func(t *rapid.T) {
			s.t = t
			if len(s.leases) < 30 {
				s.acquire()
			}
		},
		"check": func(t *rapid.T) { s.t = t; s.check() },
		"pass": func(t *rapid.T) {
			s.t = t
			s.stable()
			s.pass(rapid.SampledFrom([]time.Duration{time.Microsecond, 7 * time.Millisecond, 300 * time.Millisecond, 4 * time.Second, 29 * time.Second}).Draw(t, "span"))
		},
		"idle hours": func(t *rapid.T) { s.t = t; s.stable(); s.pass(30 * time.Minute) },
		"follower applies": func(t *rapid.T) {
			if n := node(t); n != s.leader {
				n.apply(rapid.IntRange(1, 50).Draw(t, "entries"))
			}
		},
		"leader is lost for a while": func(t *rapid.T) {
			s.t = t
			s.openDelay()
			s.elect(nil, rapid.IntRange(0, 3).Draw(t, "survive"))
			s.pass(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 20 * time.Second}).Draw(t, "headless"))
			s.elect(node(t), 0)
			s.stable()
		},
		"leader loses and regains unnoticed": func(t *rapid.T) {
			s.t = t
			s.stable()
			s.openDelay()
			s.leader.slips = true
			s.acquire()
			s.stable()
		},
		"entries under way when the leader is lost": func(t *rapid.T) {
			s.t = t
			s.stable()
			key, lease := s.key(), rapid.SampledFrom([]time.Duration{5 * time.Second, semaphore.Persist}).Draw(t, "lease")
			r := newRun([]semaphore.Request{semaphore.Acquire{Key: key, Holder: "h", Permits: 1, Lease: lease, Create: true, Capacity: 1}}, s.leader.clock().Monotonic())
			s.leader.m.queue.add(r)
			s.open = append(s.open, &question{key, r, s.leader, s.leader.m})
			began := s.now
			s.leader.p.step() // in the log, not committed
			s.openDelay()
			s.elect(node(t), rapid.IntRange(0, 3).Draw(t, "survive"))
			s.stable()
			if r.state.Load() == answered && lease != semaphore.Persist {
				s.leases = append(s.leases, &simLease{key: key, length: lease, granted: began})
			}
		},
		"restart with replay": func(t *rapid.T) {
			s.t = t
			n := node(t)
			if n == s.leader {
				s.openDelay()
				s.elect(nil, 3)
			}
			s.pass(rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "down"))
			n.offset = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "offset"))
			n.start()
			s.stable()
		},
		"snapshot is installed": func(t *rapid.T) {
			s.t = t
			n, from := node(t), node(t)
			if n == s.leader || from.applied <= n.applied {
				return
			}
			r, w := io.Pipe()
			sn := from.m.state.Snapshot()
			go func() {
				_, err := sn.WriteTo(w)
				sn.Release()
				w.CloseWithError(err)
			}()
			if err := n.m.Restore(r); err != nil {
				t.Fatalf("restore: %v", err)
			}
			n.applied = from.applied
		},
		"wall clock is stepped": func(t *rapid.T) {
			node(t).wall = time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "step"))
		},
	}
}

// Whatever becomes of nodes and leaders, no lease ends early, and none later than the stated slack;
// every request is answered, and nothing is held of which nobody was told.
func TestLeasesEndOnTimeOverChangesOfLeaderAndRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{t: t}
		for i := range 3 {
			n := &simNode{sim: s, name: i, rate: rapid.Float64Range(0.995, 1.005).Draw(t, "rate"), offset: time.Duration(i) * time.Hour}
			n.start()
			s.nodes = append(s.nodes, n)
		}
		s.stable()
		t.Repeat(s.actions())
		s.t = t
		s.close()
		// Look often enough that a lease which stays too long is seen while it does.
		for range 62 {
			s.stable()
			s.pass(time.Minute)
			s.check()
		}
	})
}
