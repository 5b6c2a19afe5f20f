package server

import (
	"fmt"
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// clusterCommands describes CLUSTER: the nodes as a Redis Cluster of one shard, whose master is the
// leader. A cluster-aware client then goes straight to the leader, and finds the others when it is
// gone. No client is ever redirected, for every node carries out every command.
func clusterCommands() []*command {
	return []*command{
		{name: "slots", summary: "Lists the nodes by slots: one range, the leader first.", run: clustered(runClusterSlots)},
		{name: "shards", summary: "Lists the nodes by shards: one, whose master is the leader.", run: clustered(runClusterShards)},
		{name: "nodes", summary: "Lists the nodes, a line each.", run: clustered(runClusterNodes)},
		{name: "info", summary: "Figures of the cluster.", run: clustered(runClusterInfo)},
		{name: "myid", summary: "Returns the id of this node, as in CLUSTER NODES.", run: clustered(runClusterMyID)},
		{name: "keyslot", usage: "key", summary: "Returns the slot of a key.", run: clustered(runClusterKeySlot)},
		{name: "countkeysinslot", usage: "slot", summary: "Refused: semaphores are not counted by slots.", run: clustered(runClusterCount)},
	}
}

// clustered makes a command of one that is refused unless it was asked for: clients that get an answer
// take the server for a Redis Cluster, wanted or not.
func clustered(run func(c *conn, t Topology, args [][]byte) error) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		if !c.server.cfg.ClusterCommands || c.server.cfg.Members == nil {
			c.refuse(errNoCluster)
			return nil
		}
		if err := run(c, c.server.cfg.Members.Topology(), args); err != nil {
			c.refuse(asRefusal(err))
		}
		return nil
	}
}

func runClusterSlots(c *conn, t Topology, _ [][]byte) error {
	s, err := c.shard(t)
	if err != nil {
		return err
	}
	alive := s.alive()
	c.out.array(1)
	c.out.array(2 + len(alive))
	c.out.number(0)
	c.out.number(lastSlot)
	for _, n := range alive {
		c.out.array(4)
		c.out.bulk(n.host)
		c.out.number(int64(n.port))
		c.out.bulk(n.id)
		c.out.mapping(0)
	}
	return nil
}

func runClusterShards(c *conn, t Topology, _ [][]byte) error {
	s, err := c.shard(t)
	if err != nil {
		return err
	}
	c.out.array(1)
	c.out.mapping(2)
	c.out.bulk("slots")
	c.out.array(2)
	c.out.number(0)
	c.out.number(lastSlot)
	c.out.bulk("nodes")
	c.out.array(len(s))
	for i, n := range s {
		c.out.shardNode(n, s.role(i, "master", "replica"))
	}
	return nil
}

func (o *output) shardNode(n shardNode, role string) {
	health := "online"
	if n.down {
		health = "fail"
	}
	o.mapping(7)
	o.bulk("id")
	o.bulk(n.id)
	o.bulk("port")
	o.number(int64(n.port))
	for _, f := range [...]Field{{"ip", n.host}, {"endpoint", n.host}, {"role", role}} {
		o.bulk(f.Name)
		o.bulk(f.Value)
	}
	o.bulk("replication-offset")
	o.number(n.offset)
	o.bulk("health")
	o.bulk(health)
}

func runClusterNodes(c *conn, t Topology, _ [][]byte) error {
	s, err := c.shard(t)
	if err != nil {
		return err
	}
	var text strings.Builder
	for i, n := range s {
		flags, link, of, slots := s.role(i, "master", "slave"), "connected", s[0].id, ""
		if i == 0 {
			of, slots = "-", fmt.Sprintf(" 0-%d", lastSlot)
		}
		if n.self {
			flags = "myself," + flags
		}
		if n.down {
			flags, link = flags+",fail", "disconnected"
		}
		fmt.Fprintf(&text, "%s %s:%d@%d %s %s 0 0 %d %s%s\n", n.id, n.host, n.port, n.bus, flags, of, t.Term, link, slots)
	}
	c.out.verbatim(text.String())
	return nil
}

func runClusterInfo(c *conn, t Topology, _ [][]byte) error {
	state, served := "ok", slots
	if _, err := c.shard(t); err != nil {
		state, served = "fail", 0
	}
	var text strings.Builder
	for _, f := range []struct {
		name  string
		value any
	}{
		{"cluster_state", state},
		{"cluster_slots_assigned", slots},
		{"cluster_slots_ok", served},
		{"cluster_slots_pfail", 0},
		{"cluster_slots_fail", slots - served},
		{"cluster_known_nodes", len(t.Nodes)},
		{"cluster_size", 1},
		{"cluster_current_epoch", t.Term},
		{"cluster_my_epoch", t.Term},
		{"cluster_stats_messages_sent", 0},
		{"cluster_stats_messages_received", 0},
		{"total_cluster_links_buffer_limit_exceeded", 0},
	} {
		fmt.Fprintf(&text, "%s:%v\r\n", f.name, f.value)
	}
	c.out.verbatim(text.String())
	return nil
}

func runClusterMyID(c *conn, t Topology, _ [][]byte) error {
	for _, m := range t.Nodes {
		if m.Self {
			c.out.bulk(redisID(m.ID))
			return nil
		}
	}
	return semaphore.Errorf(semaphore.CodeInvalid, "this node is no member of the cluster")
}

func runClusterKeySlot(c *conn, _ Topology, args [][]byte) error {
	c.out.number(int64(keySlot(args[2])))
	return nil
}

func runClusterCount(_ *conn, _ Topology, args [][]byte) error {
	n, ok := digits(args[2])
	if !ok {
		return refusal("value is not an integer or out of range")
	}
	if n > lastSlot {
		return refusal("Invalid slot")
	}
	return refusal("semaphores are not counted by slots")
}
