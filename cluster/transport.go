package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
)

const (
	// transportTimeout bounds one of Raft's calls to a peer, but for snapshots, which take it for each
	// 256 KiB.
	transportTimeout = 2 * time.Second
	// transportPool is how many idle connections are kept to each peer.
	transportPool = 3
)

// transport carries what Raft says to its peers. It has no fast path for heartbeats: those that
// overtake entries can make logs diverge (hashicorp/raft#695).
//
// Raft knows its peers by id and dials them by address alone. Where a member's disk was wiped, its
// address is answered by another node, which would vote in its stead. So every connection is to an id
// at an address.
type transport struct{ *raft.NetworkTransport }

// SetHeartbeatHandler implements raft.Transport: heartbeats go the way of everything else.
func (transport) SetHeartbeatHandler(func(raft.RPC)) {}

func newTransport(layer *streamLayer, cfg *raft.Config) transport {
	return transport{raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer, MaxPool: transportPool, Timeout: transportTimeout, Logger: cfg.Logger,
	})}
}

// exactly is an address for streamLayer.Dial where nobody but this node may answer.
func exactly(id raft.ServerID, address raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(id) + "@" + address
}

// AppendEntriesPipeline implements raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, at raft.ServerAddress) (raft.AppendPipeline, error) {
	return t.NetworkTransport.AppendEntriesPipeline(id, exactly(id, at))
}

// AppendEntries implements raft.Transport.
func (t transport) AppendEntries(id raft.ServerID, at raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	return t.NetworkTransport.AppendEntries(id, exactly(id, at), args, resp)
}

// RequestVote implements raft.Transport.
func (t transport) RequestVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return t.NetworkTransport.RequestVote(id, exactly(id, at), args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (t transport) RequestPreVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return t.NetworkTransport.RequestPreVote(id, exactly(id, at), args, resp)
}

// InstallSnapshot implements raft.Transport.
func (t transport) InstallSnapshot(id raft.ServerID, at raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	return t.NetworkTransport.InstallSnapshot(id, exactly(id, at), args, resp, data)
}

// TimeoutNow implements raft.Transport.
func (t transport) TimeoutNow(id raft.ServerID, at raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.NetworkTransport.TimeoutNow(id, exactly(id, at), args, resp)
}

// streamLayer gives Raft the connections that peers open for it.
type streamLayer struct {
	network *peer.Network
	// locate returns where a member is reached now, which may not be where the configuration has it.
	locate   func(id, address string) string
	cluster  func() string // the cluster that Raft speaks for
	cleared  func() bool   // whether it may speak
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newStreamLayer(m *membership) *streamLayer {
	return &streamLayer{
		network: m.network, locate: m.roster.locate,
		cluster:  func() string { return m.papers.read().Cluster },
		cleared:  m.cleared.Load,
		accepted: make(chan net.Conn), closed: make(chan struct{}),
	}
}

// handle passes on a connection that a peer has opened for Raft.
func (s *streamLayer) handle(c net.Conn, _ peer.Greeting) {
	select {
	case s.accepted <- quietConn{c}:
	case <-s.closed:
		c.Close()
	}
}

// quietConn ends like one that the other side has closed in peace: that this node stops, or the other
// has crashed, is nothing that Raft should call an error.
type quietConn struct{ net.Conn }

// Read implements net.Conn.
func (c quietConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}

// Accept implements net.Listener.
func (s *streamLayer) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *streamLayer) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener: where the others reach this node.
func (s *streamLayer) Addr() net.Addr { return advertised(s.network.Address()) }

// Dial implements raft.StreamLayer. Who answers must be the node that is meant, in the cluster that is
// meant: the other side checks that we are welcome, and this side that it is the right one.
func (s *streamLayer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if !s.cleared() {
		return nil, errStarting
	}
	id, address, _ := strings.Cut(string(to), "@")
	address = s.locate(id, address)
	c, g, err := s.network.Dial(ctx, address, peer.Raft)
	if err != nil {
		return nil, fmt.Errorf("connect to %s at %s: %w", id, address, err)
	}
	if err := s.mistaken(id, g); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to %s at %s: %w", id, address, err)
	}
	return c, nil
}

// mistaken says why the node that answered is not the one that was meant.
func (s *streamLayer) mistaken(id string, g peer.Greeting) error {
	switch own := s.cluster(); {
	case g.Cluster != own:
		return fmt.Errorf("a node of cluster %q answers, ours is %q", g.Cluster, own)
	case g.Node != id:
		return fmt.Errorf("another node (%s) answers", g.Node)
	}
	return nil
}

// advertised is an address as it was given, which may be a name.
type advertised string

// Network implements net.Addr.
func (advertised) Network() string { return "tcp" }

// String implements net.Addr.
func (a advertised) String() string { return string(a) }
