package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
)

const (
	// askTimeout is how long another node may take to say who it is.
	askTimeout = time.Second
	// changeTimeout is how long a change of membership may take.
	changeTimeout = 10 * time.Second
	// careEvery is how often a node looks after its membership; with a short election timeout, more often.
	careEvery = time.Second
	// searchPatience is how long a node looks for what it should find: the founder that has reserved it,
	// or its own cluster where only others answer.
	searchPatience = 10 * time.Second
)

// membership is a node's part in forming its cluster, and in what changes the cluster's members: it
// finds the others, answers their questions, and, on the leader, admits, promotes and removes.
type membership struct {
	cfg     Config
	papers  *papers
	life    uint64 // names this life of the process
	network *peer.Network
	leading func() bool // this node leads, and has applied all that was committed before it did
	left    func(error) // called when the cluster has removed this node
	log     *slog.Logger

	// roster is what is known of the others.
	roster *roster
	// callers are nodes that this one may not know of otherwise.
	callers *callers
	turn    *turn
	said    *peer.Complaints
	// halted is why the node must not serve, once there is a reason.
	halted atomic.Pointer[error]

	// cleared: this node may speak under its id. oriented: it has heard how the others are.
	cleared, oriented atomic.Bool

	begun   bool               // the directory held something of Raft's when the node was started
	onDisk  raft.Configuration // and these members, where that was looked up
	raft    *raft.Raft
	running chan struct{} // closed when raft is there

	ctx    context.Context // ends with the node
	cancel context.CancelFunc

	// leaving: this node stops, and must not lead any more.
	leaving atomic.Bool

	asides       sync.WaitGroup
	beside       chan struct{} // has room for one: what is done beside run, to which these belong
	atHome       bool          // a member of the own cluster was found among the addresses to join
	nextJoinLook time.Time

	// The rest belongs to run.
	began      time.Time
	reserved   string    // the cluster that this empty node is reserved for
	hearsay    []string  // addresses of empty nodes that others know
	heard      time.Time // when there was last a sign of it
	named      []byte    // the roster as it is on disk
	caughtUp   map[string]int
	lastCommit uint64
}

func newMembership(n *Node) *membership {
	m := &membership{
		cfg: n.cfg, papers: n.id, life: n.queue.incarnation, log: n.cfg.Logger, left: n.removed,
		leading: func() bool { return n.proposer.leading() != nil },
		roster:  newRoster(), callers: newCallers(), turn: newTurn(), said: peer.NewComplaints(n.cfg.Logger, repeatComplaint),
		running: make(chan struct{}), beside: make(chan struct{}, 1), caughtUp: map[string]int{},
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// begin gives the membership its Raft. All questions are answered from now on.
func (m *membership) begin(r *raft.Raft) {
	m.raft = r
	close(m.running)
}

var errStarting = errors.New("the node is starting")

// run forms or finds the cluster, and then looks after the membership until ctx ends.
func (m *membership) run(ctx context.Context) {
	defer m.asides.Wait()
	m.began = time.Now()
	m.loadRoster()
	if m.bound() {
		m.look(ctx, m.addresses()) // for a twin, before anything is said under this node's id
	}
	m.cleared.Store(m.halted.Load() == nil)
	pace := m.pace()
	for ctx.Err() == nil && m.halted.Load() == nil {
		if m.bound() {
			m.care(ctx)
		} else {
			m.form(ctx)
		}
		m.pause(ctx, jitter(pace))
	}
}

// pause waits before the next round, but no longer than until a node that has just found its leader can
// hear from it how the others are.
func (m *membership) pause(ctx context.Context, d time.Duration) {
	end := time.Now().Add(d)
	for left := d; left > 0 && ctx.Err() == nil; left = time.Until(end) {
		if !m.oriented.Load() {
			left = min(left, m.cfg.ElectionTimeout/8)
		}
		select {
		case <-ctx.Done():
		case <-time.After(left):
		}
		if _, leader := m.raft.LeaderWithID(); leader != "" && !m.oriented.Load() && m.halted.Load() == nil {
			m.refresh(ctx)
			m.saveRoster()
		}
	}
}

// pace is how often a node looks after its membership.
func (m *membership) pace() time.Duration { return min(careEvery, m.cfg.ElectionTimeout*5/2) }

// started reports whether Raft is there.
func (m *membership) started() bool {
	select {
	case <-m.running:
		return true
	default:
		return false
	}
}

// bound reports whether Raft has anything on disk. Then the node belongs to one cluster for ever.
func (m *membership) bound() bool {
	if !m.started() {
		return m.begun
	}
	return m.raft.LastIndex() > 0 || m.raft.CurrentTerm() > 0
}

// halt stops the node for a reason that nothing but the operator can remove.
func (m *membership) halt(why error) { m.stop(why, m.cfg.Fatal) }

func (m *membership) stop(why error, by func(error)) {
	if m.halted.CompareAndSwap(nil, &why) && m.started() { // else Open says so
		by(why)
	}
}

// refusal is why the node must not serve; nil: it may.
func (m *membership) refusal() error {
	if m == nil || m.halted.Load() == nil {
		return nil
	}
	return *m.halted.Load()
}

// configuration returns the members as this node's Raft has them, perhaps not committed yet.
func (m *membership) configuration() []raft.Server {
	if !m.started() {
		return m.onDisk.Servers
	}
	future := m.raft.GetConfiguration()
	if future.Error() != nil {
		return nil
	}
	return future.Configuration().Servers
}

// own returns this node's place among the members.
func (m *membership) own() (raft.Server, bool) { return find(m.configuration(), m.papers.ID) }

func find(servers []raft.Server, id string) (raft.Server, bool) {
	for _, s := range servers {
		if string(s.ID) == id {
			return s, true
		}
	}
	return raft.Server{}, false
}

// settled waits for one of Raft's futures, but not longer than ctx.
func settled(ctx context.Context, future raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- future.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
