package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"
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
type transport struct{ *raft.NetworkTransport }

// SetHeartbeatHandler implements raft.Transport: heartbeats go the way of everything else.
func (transport) SetHeartbeatHandler(func(raft.RPC)) {}

func newTransport(layer *streamLayer, cfg *raft.Config) transport {
	return transport{raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer, MaxPool: transportPool, Timeout: transportTimeout, Logger: cfg.Logger,
	})}
}

// streamLayer gives Raft the connections that peers open for it.
type streamLayer struct {
	network  *peer.Network
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newStreamLayer(network *peer.Network) *streamLayer {
	return &streamLayer{network: network, accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// handle passes on a connection that a peer has opened for Raft.
func (s *streamLayer) handle(c net.Conn, _ peer.Greeting) {
	select {
	case s.accepted <- c:
	case <-s.closed:
		c.Close()
	}
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

// Dial implements raft.StreamLayer.
func (s *streamLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, _, err := s.network.Dial(ctx, string(address), peer.Raft)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return c, nil
}

// advertised is an address as it was given, which may be a name.
type advertised string

// Network implements net.Addr.
func (advertised) Network() string { return "tcp" }

// String implements net.Addr.
func (a advertised) String() string { return string(a) }
