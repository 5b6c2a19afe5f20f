package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	// handshakesShare is the part of all handshakes that may be with one address: one bad neighbour
	// shall not keep the peers out. Loopback may have all.
	handshakesShare = 4
	// farewell is how long, and farewellBytes how much, a connection that is turned away may still send,
	// so that it reads the reason: an end that closes upon unread bytes destroys what it has sent.
	farewell      = time.Second
	farewellBytes = 16 << 10
)

// place is which limit a connection counts against.
type place int

const (
	handshaking place = iota // it has been accepted, and has not introduced itself
	established              // both ends know each other, or this one has dialed
)

// connection is what is read and written: the socket itself, or TLS over it. Its Network closes it at the
// latest. Close does not wait for the other end: with TLS it says no farewell.
type connection struct {
	net.Conn
	socket  net.Conn
	network *Network
	from    netip.Addr // whom it counts for while it is in its handshake
	place   place      // guarded by network.mu
}

// Close implements net.Conn.
func (c *connection) Close() error {
	err := c.socket.Close()
	c.network.forget(c)
	return err
}

// dismiss closes a connection whose other end has been told why, when that has read it.
func (c *connection) dismiss() {
	if half, ok := c.socket.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		c.socket.SetReadDeadline(time.Now().Add(farewell))
		_, _ = io.CopyN(io.Discard, c.socket, farewellBytes) // it is closed either way
	}
	_ = c.Close()
}

// enter takes a connection that has been accepted, for the time of its handshake.
func (n *Network) enter(socket net.Conn) (*connection, error) {
	c := &connection{Conn: socket, socket: socket, network: n, from: neighbour(addressOf(socket.RemoteAddr()))}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ended:
		return nil, net.ErrClosed
	case n.handshakes >= n.cfg.MaxHandshakes:
		return nil, fmt.Errorf("%d connections have not introduced themselves yet", n.handshakes)
	case n.handshakesFrom[c.from] >= max(1, n.cfg.MaxHandshakes/handshakesShare) && !c.from.IsLoopback():
		return nil, fmt.Errorf("%d connections from it have not introduced themselves yet", n.handshakesFrom[c.from])
	}
	n.handshakes++
	n.handshakesFrom[c.from]++
	n.conns[c] = struct{}{}
	return c, nil
}

// neighbour is what addresses have in common that one machine can choose among.
func neighbour(a netip.Addr) netip.Addr {
	if a.Is6() && !a.IsLoopback() {
		a = netip.PrefixFrom(a.WithZone(""), 64).Masked().Addr()
	}
	return a
}

// settle makes a connection in its handshake one of the peers'.
func (n *Network) settle(c *connection) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, open := n.conns[c]; !open {
		return net.ErrClosed
	}
	if n.established >= n.cfg.MaxConns {
		return n.full()
	}
	n.leaveLocked(c)
	n.established++
	c.place = established
	return nil
}

// reserve begins to dial: release must follow, and, unless the connection is kept, free.
func (n *Network) reserve() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return net.ErrClosed
	}
	if n.established >= n.cfg.MaxConns {
		return n.full()
	}
	n.established++
	n.work.Add(1)
	return nil
}

// free gives back what was reserved.
func (n *Network) free() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.established--
}

// keep takes a connection for which a place has been reserved.
func (n *Network) keep(socket net.Conn) (*connection, error) {
	c := &connection{Conn: socket, socket: socket, network: n, place: established}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return nil, net.ErrClosed
	}
	n.conns[c] = struct{}{}
	return c, nil
}

// forget gives back the place of a connection that is closed.
func (n *Network) forget(c *connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, open := n.conns[c]; !open {
		return
	}
	delete(n.conns, c)
	if c.place == established {
		n.established--
		return
	}
	n.leaveLocked(c)
}

func (n *Network) leaveLocked(c *connection) {
	n.handshakes--
	if n.handshakesFrom[c.from]--; n.handshakesFrom[c.from] == 0 {
		delete(n.handshakesFrom, c.from)
	}
}

var errFull = errors.New("too many connections between peers")

func (n *Network) full() error { return fmt.Errorf("%w: %d", errFull, n.cfg.MaxConns) }
