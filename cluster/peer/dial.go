package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// nameSign stands between a name and one of its addresses.
const nameSign = "/"

// Dial opens a connection for a purpose, and returns who answered. A *Refused says that the other side
// does not want it, net.ErrClosed that the Network is closed. Names are resolved each time, and the
// addresses of a name are tried until one accepts. The caller owns the connection and closes it.
func (n *Network) Dial(ctx context.Context, address string, p Purpose) (net.Conn, Greeting, error) {
	c, who, err := n.dial(ctx, address, p)
	switch {
	case err == nil:
		return c, who, nil
	case n.ctx.Err() != nil:
		return nil, Greeting{}, net.ErrClosed
	case ctx.Err() != nil:
		return nil, Greeting{}, fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	n.failed(address, err)
	return nil, Greeting{}, err
}

// Resolve returns all addresses behind host:port, each in a form that Dial and Ask take. Under mutual TLS
// the certificate of each is still expected to be for the name.
func Resolve(ctx context.Context, address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("resolve peer: %w", err)
	}
	if _, err := netip.ParseAddr(host); err == nil || strings.Contains(host, nameSign) {
		return []string{address}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("resolve peer: %w", err)
	}
	all := make([]string, len(ips))
	for i, ip := range ips {
		all[i] = net.JoinHostPort(host+nameSign+ip.Unmap().String(), port)
	}
	return all, nil
}

// split returns what to connect to and which host a certificate must be for.
func split(address string) (target, host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", fmt.Errorf("dial peer: %w", err)
	}
	name, ip, both := strings.Cut(host, nameSign)
	if !both {
		return address, host, nil
	}
	return net.JoinHostPort(ip, port), name, nil
}

func (n *Network) dial(ctx context.Context, address string, p Purpose) (*connection, Greeting, error) {
	target, host, err := split(address)
	if err != nil {
		return nil, Greeting{}, err
	}
	if err := n.reserve(); err != nil {
		return nil, Greeting{}, err
	}
	defer n.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(n.ctx, cancel)
	defer stop()
	c, err := n.connect(ctx, target)
	if err != nil {
		n.free()
		return nil, Greeting{}, err
	}
	who, err := n.introduce(ctx, c, host, p)
	if err != nil {
		_ = c.Close()
		return nil, Greeting{}, explain(err, n.secure)
	}
	return c, who, nil
}

// connect opens the socket, in the place that is reserved for it.
func (n *Network) connect(ctx context.Context, target string) (*connection, error) {
	d := net.Dialer{Timeout: n.patience, ControlContext: n.prepare}
	socket, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	tune(socket)
	c, err := n.keep(socket)
	if err != nil {
		socket.Close()
	}
	return c, err
}

// prepare sees each socket before it connects: it gets its source, and plain ones stay on loopback.
func (n *Network) prepare(_ context.Context, _, address string, socket syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	target := to.Addr().Unmap()
	if n.secure == nil && !n.cfg.Security.Plain && !target.IsLoopback() {
		return beyondLoopback(address)
	}
	if !suits(n.source, target) {
		return nil
	}
	return socket.Control(func(fd uintptr) { bindSource(fd, n.source) })
}

// introduce goes through the handshake as the end that dials.
func (n *Network) introduce(ctx context.Context, c *connection, host string, p Purpose) (Greeting, error) {
	c.SetDeadline(time.Now().Add(n.patience))
	stop := context.AfterFunc(ctx, func() { c.socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if n.secure != nil {
		over := tls.Client(c.socket, n.secure.dialing(host))
		if err := over.HandshakeContext(ctx); err != nil {
			return Greeting{}, err
		}
		c.Conn = over
	}
	if err := writeHello(c, p, n.host.Introduce()); err != nil {
		return Greeting{}, fmt.Errorf("write hello: %w", err)
	}
	who, err := readAnswer(c)
	if err != nil {
		return Greeting{}, err
	}
	if !stop() {
		return Greeting{}, ctx.Err()
	}
	c.SetDeadline(time.Time{})
	return who, nil
}

// failed logs why a dial failed, if it is not for want of a peer.
func (n *Network) failed(address string, why error) {
	var network *net.OpError
	var refused *Refused
	switch {
	case errors.As(why, &refused):
		n.complain("peer refuses this node", address, why)
	case errors.Is(why, errFull), errors.Is(why, errUnauthenticated):
		n.complain("connection to peer not opened", address, why)
	case errors.As(why, &network), quiet(why):
	default:
		n.complain("peer does not fit this node", address, why)
	}
}
