package server

// Members shows the nodes of the cluster. It is called from many goroutines at once.
type Members interface {
	// List returns the members with all that can be learnt of them, for operators. It may ask the
	// others, and return after seconds.
	List() ([]Member, error)
	// Topology returns what this node knows without asking anybody, at once, for clients.
	Topology() Topology
}

// Care changes the cluster and looks after it. Any node carries it out: it is the engine that finds
// the leader. Calls come from many goroutines at once. Each returns in seconds, whatever happens: a
// server that stops waits for it. Errors are told to the operator; one that is no *semaphore.Error as
// ERR and its text.
type Care interface {
	// Add makes the empty node that waits at a peer address, host:port, a member, and returns its id.
	Add(address string) (id string, err error)
	// Remove ends the membership of the node with this id, whether it lives or not. It returns false
	// where there is no such member.
	Remove(id string) (bool, error)
	// Transfer hands leadership to the node with this id; empty: to the one that serves best.
	Transfer(id string) error
	// Snapshot writes a snapshot of the state at this node, and returns the path of the file, which
	// --restore takes.
	Snapshot() (path string, err error)
}

// The roles of a Member.
const (
	RoleLeader      = "leader"
	RoleFollower    = "follower"
	RoleCandidate   = "candidate"
	RoleUnreachable = "unreachable"
	RoleUnknown     = "unknown" // nobody has had the time to hear it yet
)

// Member is one node of the cluster.
type Member struct {
	ID            string // made with the data directory
	Label         string // chosen by the operator; may be empty
	Address       string // where its peers reach it, host:port; empty: it has none
	Role          string // one of the roles
	Voter         bool
	Self          bool   // the node that answers
	ClientAddress string // where clients reach it, host:port; empty: it is not known
	Applied       int64  // the last entry of the log that it has applied; -1: it is not known
}

// Topology is the cluster as one node knows it at a moment.
type Topology struct {
	// Nodes are the members. One is in the role of the leader, unless no leader is known.
	Nodes []Member
	// Term grows with every change of leader.
	Term uint64
}
