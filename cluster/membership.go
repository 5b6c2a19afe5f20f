package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	log     *slog.Logger

	// roster is what is known of the others.
	roster *roster
	// callers are nodes that this one may not know of otherwise.
	callers *callers
	// turn has room for one: the change of membership that is under way.
	turn chan struct{}
	said *complaints
	// halted is why the node must not serve, once there is a reason.
	halted atomic.Pointer[error]

	// cleared: this node may speak under its id.
	cleared atomic.Bool

	raft    *raft.Raft
	running chan struct{} // closed when raft is there

	ctx    context.Context // ends with the node
	cancel context.CancelFunc

	// The rest belongs to run.
	began        time.Time
	reserved     string    // the cluster that this empty node is reserved for
	hearsay      []string  // addresses of empty nodes that others know
	heard        time.Time // when there was last a sign of it
	atHome       bool      // a member of the own cluster was found among the addresses to join
	nextJoinLook time.Time
	caughtUp     map[string]int
	lastCommit   uint64
}

func newMembership(cfg Config, p *papers, life uint64, leading func() bool) *membership {
	m := &membership{
		cfg: cfg, papers: p, life: life, leading: leading, log: cfg.Logger,
		roster: newRoster(), callers: newCallers(), turn: make(chan struct{}, 1), said: newComplaints(cfg.Logger),
		running: make(chan struct{}), caughtUp: map[string]int{},
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// begin gives the membership its Raft. Questions are answered from now on.
func (m *membership) begin(r *raft.Raft) {
	m.raft = r
	close(m.running)
}

var errStarting = errors.New("the node is starting")

// run forms or finds the cluster, and then looks after the membership until ctx ends.
func (m *membership) run(ctx context.Context) {
	m.began = time.Now()
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
		select {
		case <-ctx.Done():
		case <-time.After(jitter(pace)):
		}
	}
}

// pace is how often a node looks after its membership.
func (m *membership) pace() time.Duration { return min(careEvery, m.cfg.ElectionTimeout*5/2) }

// bound reports whether Raft has anything on disk. Then the node belongs to one cluster for ever.
func (m *membership) bound() bool { return m.raft.LastIndex() > 0 || m.raft.CurrentTerm() > 0 }

// halt stops the node for a reason that nothing but the operator can remove.
func (m *membership) halt(why error) {
	if m.halted.CompareAndSwap(nil, &why) {
		m.cfg.Fatal(why)
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
		select {
		case <-m.running:
		case <-m.ctx.Done():
			return nil, errors.New("the node stops")
		}
		var q query
		if err := json.Unmarshal(text, &q); err != nil {
			return nil, fmt.Errorf("read question: %w", err)
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
	_, err := m.network.Ask(ctx, address, q, answer)
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
