package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The defaults of Config.
const (
	DefaultAddr     = "127.0.0.1:7360"
	DefaultPatience = 10 * time.Second
)

// Config says where the servers are and how to reach them. The zero value is one server on this machine.
type Config struct {
	// Addrs are the servers, host:port or the path of a Unix socket. Several are nodes of one cluster:
	// the first one that answers is used, and left when it does not answer any more. None: DefaultAddr.
	Addrs    []string
	Username string
	Password string
	TLS      *tls.Config // nil: plain
	// Name is shown for this client's connections in listings of holders and waiters that have no Label.
	Name string
	// Patience is how long requests are repeated while no server answers, or none can decide because
	// it has no leader, before that is ErrUnavailable. It counts from when one last could. 0:
	// DefaultPatience. Negative: each address is tried once.
	Patience time.Duration
	// Connections are the most to one server, besides those that wait in line. 0: 10 for each core.
	Connections int
}

// Client asks servers for permits and keeps the ones that it got. It may be used by many goroutines at
// once. Make one for the whole program, and Close it at the end.
type Client struct {
	config Config
	nodes  nodes
	now    func() time.Duration // a clock that goes on in suspend, from any origin

	ctx    context.Context // ends by Close
	cancel context.CancelFunc
	tasks  tasks
}

// New makes a client. It connects when it is first asked for something.
func New(config Config) (*Client, error) {
	return newClient(config, elapsed)
}

func newClient(config Config, now func() time.Duration) (*Client, error) {
	if len(config.Addrs) == 0 {
		config.Addrs = []string{DefaultAddr}
	}
	if slices.Contains(config.Addrs, "") {
		return nil, errors.New("an address is empty")
	}
	if config.Connections < 0 {
		return nil, fmt.Errorf("connections: %d is less than 0", config.Connections)
	}
	if config.Patience == 0 {
		config.Patience = DefaultPatience
	}
	c := &Client{config: config, now: now}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, addr := range config.Addrs {
		n := newNode(addr, config)
		n.pulse = newPulse(c, n)
		c.nodes.all = append(c.nodes.all, n)
	}
	return c, nil
}

// Call sends one command, such as "SEM.INFO", name, and returns its reply: nil, an int64, a string, or a
// []any of these. It goes to the next server when one does not answer, so it may be carried out twice. A
// command that bears that may answer as the second one then: SEM.RELEASE 0, though the first one released.
// SEM.ACQUIRE without HOLDER, SEM.DELETE and SEM.NODE do not bear it. The error is an *Error
// that a server refused it with, ErrUnavailable, ErrClosed, or how ctx ended. A command that may wait in
// line does not belong here: see Acquire; nor does one that changes the connection, such as SUBSCRIBE.
func (c *Client) Call(ctx context.Context, args ...any) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("%w: it has no words", ErrInvalid)
	}
	reply, _, err := c.ask(ctx, answerTimeout, args...)
	return reply, err
}

// ask sends a command until a server answers. Each attempt takes at most within. Repeated says that an
// attempt before the answered one may have been applied too.
func (c *Client) ask(ctx context.Context, within time.Duration, args ...any) (reply any, repeated bool, err error) {
	t := tries{client: c}
	for {
		at, began := c.nodes.current(), c.now()
		err := t.look(ctx, at)
		if err == nil {
			reply, err = c.exchange(ctx, at.calls, within, args...)
		}
		if err == nil {
			return reply, t.sent, nil
		}
		if err := t.again(ctx, at, began, err); err != nil {
			return nil, t.sent, err
		}
	}
}

// Close ends what is under way and closes the connections. Permits that are still held are not given
// back, for their work may go on: their contexts end with ErrClosed, and the leases by themselves.
//
// It may be called again, to no effect.
func (c *Client) Close() error {
	if c.ctx.Err() != nil {
		return nil
	}
	c.cancel()
	var errs []error
	for _, n := range c.nodes.all {
		errs = append(errs, n.close()) // ends the commands in flight
	}
	c.tasks.close()
	return errors.Join(errs...)
}
