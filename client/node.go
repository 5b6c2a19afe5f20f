package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout = 2 * time.Second
	// keepLines is how many connections of waits that have ended are kept for the next ones, for each
	// server.
	keepLines = 64
	// lineBuffer is the size of the buffers of a connection that waits; there may be thousands.
	lineBuffer = 1 << 10
)

// nodes are the servers, any of which may be asked, and the one that is asked at present.
type nodes struct {
	all []*node
	at  atomic.Int64
}

func (n *nodes) current() *node { return n.all[n.at.Load()] }

// leave moves on from a server that did not answer, unless somebody else has.
func (n *nodes) leave(from *node) {
	i := int64(slices.Index(n.all, from))
	n.at.CompareAndSwap(i, (i+1)%int64(len(n.all)))
}

// node is one server. A connection that waits in line is of no use for anything else meanwhile, so each
// has a client of its own (a line), which can be closed to end the wait.
type node struct {
	addr   string
	config Config
	calls  *redis.Client
	pulse  *pulse

	mu     sync.Mutex
	lines  []*redis.Client // not in use
	closed bool
}

func newNode(addr string, config Config) *node {
	n := &node{addr: addr, config: config}
	o := n.options()
	o.PoolSize, o.PoolTimeout = config.Connections, answerTimeout
	n.calls = redis.NewClient(o)
	return n
}

// options have go-redis do what it is told, once: repeating is up to us, who know what may be repeated.
func (n *node) options() *redis.Options {
	return &redis.Options{
		Addr: n.addr, Username: n.config.Username, Password: n.config.Password, ClientName: n.config.Name,
		Dialer: n.connect, DialTimeout: dialTimeout, DialerRetries: 1, MaxRetries: -1,
		ReadTimeout: -1, WriteTimeout: -1, ContextTimeoutEnabled: true, // each command has its own deadline
		Protocol: 2, DisableIdentity: true, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func (n *node) connect(ctx context.Context, kind, addr string) (net.Conn, error) {
	conn, err := n.dial(ctx, kind, addr)
	if err == nil {
		return conn, nil
	}
	var failed *net.OpError
	if !errors.As(err, &failed) || failed.Op != "dial" {
		err = &net.OpError{Op: "dial", Net: kind, Err: err} // such as a handshake: nothing was asked
	}
	return undialled{fmt.Errorf("connect: %w", err)}, nil // go-redis takes one wrapping off
}

func (n *node) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{
		Timeout: dialTimeout,
		Control: giveUpSoon,
		// A server that lost its power says nothing; whoever waits in line would wait to the end.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 2},
	}
	if n.config.TLS != nil && network != "unix" {
		return (&tls.Dialer{NetDialer: d, Config: n.config.TLS}).DialContext(ctx, network, addr)
	}
	return d.DialContext(ctx, network, addr)
}

// line is a client with one connection, for a request that may wait. It goes back by keep, or is closed.
func (n *node) line() *redis.Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.lines) - 1; last >= 0 {
		line := n.lines[last]
		n.lines = n.lines[:last]
		return line
	}
	o := n.options()
	o.PoolSize, o.ReadBufferSize, o.WriteBufferSize = 1, lineBuffer, lineBuffer
	return redis.NewClient(o)
}

// keep takes a line back whose request has been answered.
func (n *node) keep(line *redis.Client) {
	if !n.store(line) {
		_ = line.Close() // nothing depends on it any more
	}
}

func (n *node) store(line *redis.Client) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || len(n.lines) >= keepLines {
		return false
	}
	n.lines = append(n.lines, line)
	return true
}

// close closes the connections, which ends the requests under way, except those that wait: their lines
// belong to who waits.
func (n *node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	errs := []error{n.calls.Close()}
	for _, line := range n.lines {
		errs = append(errs, line.Close())
	}
	n.lines, n.closed = nil, true
	return errors.Join(errs...)
}
