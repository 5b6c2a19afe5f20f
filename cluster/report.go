package cluster

import (
	"strconv"
	"strings"
)

// Figure is one line of a report.
type Figure struct{ Name, Value string }

// Report says how the node stands, for the Raft section of INFO.
func (n *Node) Report() []Figure {
	stats := n.machine.published.Load().stats
	address, leader := n.raft.LeaderWithID()
	queued, flying := n.queue.lengths()
	return []Figure{
		{"raft_role", strings.ToLower(n.raft.State().String())},
		{"raft_leader", string(address)},
		{"raft_leader_id", string(leader)},
		{"raft_node_id", n.id.ID},
		{"raft_node_label", n.cfg.NodeID},
		{"raft_cluster_id", n.id.read().Cluster},
		{"raft_term", strconv.FormatUint(n.raft.CurrentTerm(), 10)},
		{"raft_commit_index", strconv.FormatUint(n.raft.CommitIndex(), 10)},
		{"raft_applied_index", strconv.FormatUint(n.raft.AppliedIndex(), 10)},
		{"raft_last_index", strconv.FormatUint(n.raft.LastIndex(), 10)},
		{"raft_peers", strconv.Itoa(n.peers())},
		{"raft_log_store", n.cfg.LogStore},
		{"raft_entries_in_flight", strconv.Itoa(flying)},
		{"raft_requests_queued", strconv.Itoa(queued)},
		{"raft_semaphores", strconv.FormatInt(stats.Semaphores, 10)},
		{"raft_holders", strconv.FormatInt(stats.Holders, 10)},
		{"raft_waiters", strconv.FormatInt(stats.Waiters, 10)},
	}
}

// Term returns Raft's term: it grows with every change of leader.
func (n *Node) Term() uint64 { return n.raft.CurrentTerm() }

// peers returns how many other members the cluster has.
func (n *Node) peers() int {
	future := n.raft.GetConfiguration()
	if future.Error() != nil {
		return 0
	}
	return max(0, len(future.Configuration().Servers)-1)
}
