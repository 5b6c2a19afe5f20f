package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Config is how a Network is opened.
type Config struct {
	Listen    string // host:port
	Advertise string // host:port under which the others reach this node; empty: where it listens
	Logger    *slog.Logger
}

const handshakeTimeout = 5 * time.Second

// Network is a node's end of its connections to its peers. Its methods may be called from many
// goroutines at once.
type Network struct {
	cfg      Config
	listener net.Listener
	dialer   net.Dialer

	host  Host
	work  sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool
}

// Host is what a node tells its Network.
type Host struct {
	Introduce func() Greeting               // who this node is
	Admit     func(Purpose, Greeting) error // whether a peer is welcome; an error is the reason told to it
	// Handle says what to do with an accepted connection, by purpose. A handler owns the connection and
	// ends when it is closed.
	Handle map[Purpose]func(net.Conn, Greeting)
}

// Listen binds the port. Nothing is accepted before Serve.
func Listen(cfg Config) (*Network, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for peers: %w", err)
	}
	if cfg.Advertise == "" {
		cfg.Advertise = l.Addr().String()
	}
	n := &Network{cfg: cfg, listener: l, conns: make(map[net.Conn]struct{})}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsUnspecified() {
		n.dialer.LocalAddr = &net.TCPAddr{IP: a.IP, Zone: a.Zone}
	}
	return n, nil
}

// Address is where the others reach this node.
func (n *Network) Address() string { return n.cfg.Advertise }

// Serve accepts connections until Close. It is called once, before the first Dial.
func (n *Network) Serve(h Host) {
	n.host = h
	n.work.Go(n.accept)
}

func (n *Network) accept() {
	for {
		c, err := n.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !n.keep(c) {
			c.Close()
			return
		}
		n.work.Go(func() { n.receive(&tracked{Conn: c, network: n}) })
	}
}

func (n *Network) receive(c net.Conn) {
	c.SetDeadline(time.Now().Add(handshakeTimeout))
	purpose, greeting, err := readHello(c)
	if err != nil {
		c.Close()
		return
	}
	handle, known := n.host.Handle[purpose]
	switch {
	case !known:
		err = fmt.Errorf("unknown purpose %q", purpose)
	default:
		err = n.host.Admit(purpose, greeting)
	}
	if err != nil {
		_ = writeRefusal(c, err.Error()) // it is closed either way
		c.Close()
		return
	}
	if err := writeWelcome(c, n.host.Introduce()); err != nil {
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	handle(c, greeting)
}

// Dial opens a connection for a purpose, and returns who answered. A *Refused says that the other side
// does not want it.
func (n *Network) Dial(ctx context.Context, address string, p Purpose) (net.Conn, Greeting, error) {
	c, err := n.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, Greeting{}, err
	}
	if !n.keep(c) {
		c.Close()
		return nil, Greeting{}, net.ErrClosed
	}
	t := &tracked{Conn: c, network: n}
	deadline := time.Now().Add(handshakeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	t.SetDeadline(deadline)
	if err := writeHello(t, p, n.host.Introduce()); err != nil {
		t.Close()
		return nil, Greeting{}, fmt.Errorf("write hello: %w", err)
	}
	g, err := readAnswer(t)
	if err != nil {
		t.Close()
		return nil, Greeting{}, err
	}
	t.SetDeadline(time.Time{})
	return t, g, nil
}

// Close closes the port and every connection, and waits for the handlers.
func (n *Network) Close() error {
	n.mu.Lock()
	n.ended = true
	for c := range n.conns {
		c.Close()
	}
	n.mu.Unlock()
	err := n.listener.Close()
	n.work.Wait()
	return err
}

func (n *Network) keep(c net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	n.conns[c] = struct{}{}
	return true
}

// tracked is a connection that its Network closes at the latest.
type tracked struct {
	net.Conn
	network *Network
}

func (t *tracked) Close() error {
	t.network.mu.Lock()
	delete(t.network.conns, t.Conn)
	t.network.mu.Unlock()
	return t.Conn.Close()
}
