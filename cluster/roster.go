package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// freshFor is how long a member counts as reachable after it was heard last.
const freshFor = 3 * time.Second

// card is what a node says of itself when it is asked who it is.
type card struct {
	Node    string   `json:"node"`
	Label   string   `json:"label"`
	Chosen  bool     `json:"chosen"` // the label was given by the operator
	Address string   `json:"address"`
	Client  string   `json:"client"`
	Life    uint64   `json:"life"` // of its process
	Reads   versions `json:"reads"`

	Cluster string `json:"cluster"` // that it belongs to or is reserved for
	Bound   bool   `json:"bound"`   // it belongs to it for ever
	Counted bool   `json:"counted"` // which was once known to count it in
	Expect  int    `json:"expect"`

	Callers []string `json:"callers,omitempty"` // addresses of empty nodes that have asked this one, also empty

	Leaving bool   `json:"leaving,omitempty"` // it stops
	Role    string `json:"role"`
	Applied uint64 `json:"applied"`
	Leader  place  `json:"leader"` // as far as it knows
}

// roleStarting is that of a node that opens its directory. It says who it is, and takes part in nothing.
const roleStarting = "starting"

// entry is a card and how old it is, in milliseconds.
type entry struct {
	Card card  `json:"card"`
	Age  int64 `json:"age"`
}

// card is what this node says of itself.
func (m *membership) card() card {
	id := m.papers.read()
	c := card{
		Node: id.ID, Label: m.cfg.NodeID, Chosen: m.cfg.NodeIDGiven,
		Address: m.network.Address(), Client: m.cfg.ClientAdvertise, Life: m.life, Reads: readable(),
		Cluster: id.Cluster, Bound: m.bound(), Counted: id.Member, Expect: m.cfg.BootstrapExpect,
		Leaving: m.leaving.Load(), Role: roleStarting,
	}
	if m.started() {
		address, leader := m.raft.LeaderWithID()
		c.Role, c.Applied = strings.ToLower(m.raft.State().String()), m.raft.AppliedIndex()
		c.Leader = place{Node: string(leader), Address: string(address)}
	}
	if !c.Bound {
		c.Callers = m.callers.recent()
	}
	return c
}

// roster is what is known of the other members. The leader asks each of them, the others ask the leader.
type roster struct {
	mu    sync.Mutex
	cards map[string]heard     // by id
	at    map[string]string    // by id: where a member answers that does not where the configuration has it
	since map[string]time.Time // by id: when a member was first asked after
}

type heard struct {
	card card
	when time.Time
}

func newRoster() *roster {
	return &roster{cards: make(map[string]heard), at: make(map[string]string), since: make(map[string]time.Time)}
}

// note keeps a card.
func (r *roster) note(c card, when time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cards[c.Node].when.After(when) {
		r.cards[c.Node] = heard{c, when}
	}
}

// of returns what is known of a member, and whether it was heard a moment ago.
func (r *roster) of(id string) (card, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, known := r.cards[id]
	return h.card, known && time.Since(h.when) < freshFor
}

// silent reports whether there was time enough to hear a member: else it is not known how it is.
func (r *roster) silent(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, asked := r.since[id]
	if !asked {
		since = time.Now()
		r.since[id] = since
	}
	return !r.cards[id].when.IsZero() || time.Since(since) > freshFor
}

// heardSince reports whether a member was heard after a moment.
func (r *roster) heardSince(id string, moment time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cards[id].when.After(moment)
}

// all returns everything that is known.
func (r *roster) all() []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []entry
	for _, h := range r.cards {
		all = append(all, entry{h.card, time.Since(h.when).Milliseconds()})
	}
	return all
}

// keep forgets who is not a member any more.
func (r *roster) keep(members []raft.Server) {
	gone := func(id string) bool {
		_, member := find(members, id)
		return !member
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.cards, func(id string, _ heard) bool { return gone(id) })
	maps.DeleteFunc(r.at, func(id string, _ string) bool { return gone(id) })
	maps.DeleteFunc(r.since, func(id string, _ time.Time) bool { return gone(id) })
}

// moved says where a member answers; empty: where the configuration has it.
func (r *roster) moved(id, address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if address == "" {
		delete(r.at, id)
		return
	}
	r.at[id] = address
}

// locate returns where to reach a member that the configuration has at an address.
func (r *roster) locate(id, address string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, moved := r.at[id]; moved {
		return at
	}
	return address
}

// refresh brings the roster up to date. From the first time on that it has done so, the node knows the
// others as they are, and is fit to be asked.
func (m *membership) refresh(ctx context.Context) {
	m.roster.note(m.card(), time.Now())
	if m.leading() {
		m.askMembers(ctx)
		m.oriented.Store(true)
		return
	}
	if _, leader := m.raft.LeaderWithID(); leader == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var all []entry
	if m.once(ctx, query{Ask: askRoster}, &all) != nil {
		return
	}
	now := time.Now()
	for _, e := range all {
		if e.Card.Node != m.papers.ID {
			m.roster.note(e.Card, now.Add(-time.Duration(e.Age)*time.Millisecond))
		}
	}
	m.oriented.Store(true)
}

// meet notes a member that was just seen.
func (m *membership) meet(s sighting) {
	if s.Cluster == m.papers.read().Cluster && s.Role != roleStarting {
		m.roster.note(s.card, time.Now())
	}
}

// askMembers asks each other member who it is.
func (m *membership) askMembers(ctx context.Context) {
	var where []string
	for _, s := range m.configuration() {
		if string(s.ID) != m.papers.ID {
			where = append(where, m.roster.locate(string(s.ID), string(s.Address)))
		}
	}
	for _, seen := range m.look(ctx, where) {
		m.meet(seen)
	}
	m.roster.keep(m.configuration())
}

// What a Member's role is where it is not known.
const (
	RoleUnreachable = "unreachable" // it was not heard for a while
	RoleUnknown     = "unknown"     // there was no time yet to hear it
)

// Member is one node of the cluster.
type Member struct {
	ID, Label, Address string
	Role               string // leader, follower or candidate; or one of the following
	Voter              bool
	Self               bool   // the node that was asked
	ClientAddress      string // where clients reach it; empty: it did not say, or was never heard
	Applied            int64  // how far it has applied the log, about a second ago; -1: not known
}

// Members lists the nodes of the cluster, by id, as far as this node knows them. It does not block.
func (n *Node) Members() ([]Member, error) {
	future := n.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return nil, err
	}
	_, leader := n.raft.LeaderWithID()
	var members []Member
	for _, s := range future.Configuration().Servers {
		one := Member{ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter, Applied: -1, Role: RoleUnreachable}
		switch {
		case one.ID == n.id.ID:
			n.describeSelf(&one)
		case n.membership != nil:
			n.membership.describe(&one)
		}
		switch {
		case s.ID == leader && one.Role != RoleUnreachable:
			one.Role = "leader"
		case one.Role == "leader" && leader != "": // it was when it was last asked
			one.Role = "follower"
		}
		members = append(members, one)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return members, nil
}

func (n *Node) describeSelf(one *Member) {
	one.Self = true
	one.Label, one.ClientAddress = n.cfg.NodeID, n.cfg.ClientAdvertise
	one.Role = strings.ToLower(n.raft.State().String())
	one.Applied = int64(n.raft.AppliedIndex())
	if n.membership == nil {
		one.Address = "" // a node without peers has no address for them
	}
}

// describe fills in what is known of another member.
func (m *membership) describe(one *Member) {
	c, fresh := m.roster.of(one.ID)
	one.Label, one.ClientAddress = c.Label, c.Client
	if c.Applied > 0 {
		one.Applied = int64(c.Applied)
	}
	switch {
	case fresh:
		one.Role = c.Role
	case !m.roster.silent(one.ID):
		one.Role = RoleUnknown
	}
}
