package server

import (
	"bytes"
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/semserver/semserver/semaphore"
)

const (
	// slots is how many slots a Redis Cluster has. All of them are in our one shard.
	slots    = 16384
	lastSlot = slots - 1
	// redisIDLength is that of a node's id in a Redis Cluster, in hexadecimal digits.
	redisIDLength = 40
)

// shard is the nodes that clients can be told of, the master first, the others by their ids.
type shard []shardNode

// shardNode is a node as cluster-aware clients see it.
type shardNode struct {
	id         string
	host       string // a name or an address
	port, bus  int    // for clients, for peers (0: it has none)
	offset     int64
	self, down bool
}

// shard arranges the nodes. Where the leader has no address for clients this node stands in for it:
// it takes every command as well.
func (c *conn) shard(t Topology) (shard, error) {
	var s shard
	master, led := "", false
	for _, m := range t.Nodes {
		n, ok := c.shardNode(m)
		if ok {
			s = append(s, n)
		}
		led = led || m.Role == RoleLeader
		if ok && (m.Role == RoleLeader || m.Self && master == "") {
			master = n.id
		}
	}
	switch {
	case !led:
		return nil, semaphore.ErrDown
	case master == "":
		return nil, refusal("no node has an address for clients")
	}
	slices.SortFunc(s, func(a, b shardNode) int {
		return cmp.Or(-cmp.Compare(truth(a.id == master), truth(b.id == master)), strings.Compare(a.id, b.id))
	})
	return s, nil
}

// shardNode returns false where clients could not reach the node.
func (c *conn) shardNode(m Member) (shardNode, bool) {
	address := m.ClientAddress
	if m.Self {
		address = c.reached(address)
	}
	host, port, ok := endpoint(address)
	_, bus, _ := endpoint(m.Address)
	return shardNode{
		id: redisID(m.ID), host: host, port: port, bus: bus,
		offset: max(0, m.Applied), self: m.Self, down: m.Role == RoleUnreachable,
	}, ok
}

// reached completes an address of this node that names every interface by the one that this client has
// reached.
func (c *conn) reached(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" && !unspecified(host) {
		return address
	}
	local, _, err := net.SplitHostPort(c.local)
	if err != nil {
		local = "127.0.0.1" // by a unix socket, so from this machine
	}
	return net.JoinHostPort(local, port)
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// alive are the nodes that clients can reach now.
func (s shard) alive() shard {
	return slices.DeleteFunc(slices.Clone(s), func(n shardNode) bool { return n.down })
}

// role names the role of the node at i.
func (s shard) role(i int, master, replica string) string {
	if i == 0 {
		return master
	}
	return replica
}

// redisID is a node's id as long as those of Redis Cluster.
func redisID(id string) string {
	return id + strings.Repeat("0", max(0, redisIDLength-len(id)))
}

// keySlot is the slot of a key in a Redis Cluster: that of the part in braces, where there is one.
func keySlot(key []byte) uint16 {
	if _, rest, ok := bytes.Cut(key, []byte("{")); ok {
		if tag, _, ok := bytes.Cut(rest, []byte("}")); ok && len(tag) > 0 {
			key = tag
		}
	}
	return crc16(key) % slots
}

// crc16 is CRC-16/XMODEM.
func crc16(b []byte) uint16 {
	var crc uint16
	for _, c := range b {
		crc ^= uint16(c) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
