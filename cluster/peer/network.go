package peer

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// DefaultMaxConns is MaxConns where it is not set.
	DefaultMaxConns   = 256
	defaultHandshakes = 64
	// handshakeTimeout bounds each of the two steps before a connection can be used: to connect, and to
	// introduce oneself.
	handshakeTimeout = 5 * time.Second
)

// Config is how a Network is opened.
type Config struct {
	Listen    string // host:port
	Advertise string // host:port under which the others reach this node; empty: where it listens
	// Security is how peers are told from strangers.
	Security Security
	// MaxConns is how many connections to and from peers there may be; 0: 256. Beyond it peers are
	// refused, and Dial fails.
	MaxConns int
	// MaxHandshakes is how many accepted connections may not have introduced themselves yet; 0: 64. One
	// address beyond loopback may have a quarter of them. Beyond it they are closed at once.
	MaxHandshakes int
	Logger        *slog.Logger // nil: nothing is logged
}

func (cfg Config) complete() (Config, error) {
	if cfg.MaxConns < 0 || cfg.MaxHandshakes < 0 {
		return cfg, fmt.Errorf("limits on connections between peers must not be negative")
	}
	if cfg.MaxConns == 0 {
		cfg.MaxConns = DefaultMaxConns
	}
	if cfg.MaxHandshakes == 0 {
		cfg.MaxHandshakes = defaultHandshakes
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg, nil
}

// Network is a node's end of its connections to its peers. Its methods may be called from many
// goroutines at once.
type Network struct {
	cfg        Config
	listener   net.Listener
	source     netip.Addr  // where Dial connects from; zero: the system chooses
	secure     credentials // nil: plain
	complaints *Complaints
	patience   time.Duration // how long a handshake may take
	host       Host

	ctx    context.Context // ends with the Network
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu             sync.Mutex // guards what follows
	ended          bool
	conns          map[*connection]struct{}
	established    int // connections of peers, and dials
	handshakes     int // accepted connections in their handshake
	handshakesFrom map[netip.Addr]int
}

// Host is what a node tells its Network. Its functions may be called from many goroutines at once.
type Host struct {
	Introduce func() Greeting               // who this node is
	Admit     func(Purpose, Greeting) error // whether a peer is welcome; an error is the reason told to it
	// Handle says what to do with an accepted connection, by purpose. A handler owns the connection and
	// ends when it is closed.
	Handle map[Purpose]func(net.Conn, Greeting)
}

// Listen checks the security and binds the port. Nothing is accepted before Serve. The caller owns the
// Network and calls Close.
func Listen(cfg Config) (*Network, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	secure, err := cfg.Security.open(cfg.Listen, cfg.Advertise, cfg.Logger)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for peers: %w", err)
	}
	if bound := l.Addr().String(); secure == nil && !cfg.Security.Plain && !onLoopback(bound) {
		l.Close()
		return nil, beyondLoopback(bound)
	}
	if cfg.Advertise == "" {
		cfg.Advertise = boundTo(cfg.Listen, l)
	}
	return newNetwork(cfg, secure, l), nil
}

// boundTo is an address to listen at with the port that was found for it.
func boundTo(listen string, l net.Listener) string {
	host, _, _ := net.SplitHostPort(listen)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}

func newNetwork(cfg Config, secure credentials, l net.Listener) *Network {
	n := &Network{
		cfg: cfg, listener: l, source: addressOf(l.Addr()), secure: secure,
		complaints: NewComplaints(cfg.Logger, complainEvery), patience: handshakeTimeout,
		conns:          make(map[*connection]struct{}),
		handshakesFrom: make(map[netip.Addr]int),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Address is where the others reach this node.
func (n *Network) Address() string { return n.cfg.Advertise }

// Serve accepts connections until Close. It is called once, before the first Dial.
func (n *Network) Serve(h Host) {
	n.host = h
	n.work.Go(n.accept)
	if f, ok := n.secure.(*files); ok {
		n.work.Go(func() { f.watch(n.ctx) })
	}
}

// Close closes the port and every connection, ends dials, and waits for them and for the handlers. It
// may be called again.
func (n *Network) Close() error {
	n.mu.Lock()
	first := !n.ended
	n.ended = true
	open := make([]*connection, 0, len(n.conns))
	for c := range n.conns {
		open = append(open, c)
	}
	n.mu.Unlock()
	var err error
	if first {
		n.cancel()
		err = n.listener.Close()
	}
	for _, c := range open {
		_ = c.Close()
	}
	n.work.Wait()
	return err
}
