package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// clientName is how our connections show in CLIENT LIST.
const clientName = "semserver"

// wire is one connection. It counts what was sent, because what was not sent was certainly not
// executed.
type wire struct {
	*redis.Client
	addr string
	net  net.Conn
	sent *atomic.Int64
}

// counted is a net.Conn that counts.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// peekable is a counted whose socket go-redis may look at, to see before it writes that the other side
// has closed it.
type peekable struct {
	counted
	syscall.Conn
}

// dialer makes wires.
type dialer struct {
	options Options
	login   credentials
	db      int
}

// dial connects and logs in.
func (d dialer) dial(ctx context.Context, addr string) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	w, err := d.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	if err := w.Ping(ctx).Err(); err != nil {
		w.close()
		return nil, fmt.Errorf("log in: %w", err)
	}
	return w, nil
}

// connect is dial without the login, which comes with the first command.
func (d dialer) connect(ctx context.Context, addr string) (*wire, error) {
	password, err := d.login.password()
	if err != nil {
		return nil, err
	}
	network := "tcp"
	if d.options.Target.Unix {
		network = "unix"
	}
	raw, err := (&net.Dialer{KeepAliveConfig: keepAlive()}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	w := &wire{addr: addr, sent: new(atomic.Int64)}
	if w.net, err = d.secure(ctx, addr, counted{raw, w.sent}); err != nil {
		_ = raw.Close()
		return nil, err
	}
	w.Client = redis.NewClient(d.settings(w.net, addr, password))
	return w, nil
}

// secure adds TLS, where the URL asks for it.
func (d dialer) secure(ctx context.Context, addr string, c counted) (net.Conn, error) {
	config, err := d.options.tlsConfig(addr)
	if err != nil {
		return nil, err
	}
	if config != nil {
		secured := tls.Client(c, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		return secured, nil
	}
	if socket, ok := c.Conn.(syscall.Conn); ok {
		return peekable{c, socket}, nil
	}
	return c, nil
}

// settings make a client of one connection, which sends everything once and never dials again: a client
// that dials by itself would send a call to a server that nobody has looked at, and one that repeats
// would take away the knowledge of what was sent.
func (d dialer) settings(c net.Conn, addr, password string) *redis.Options {
	var used atomic.Bool
	reply := d.options.Timeout
	if d.options.Replicas > 0 {
		reply += d.options.ReplicaTimeout // Redis may take all of it to answer WAIT
	}
	return &redis.Options{
		Addr: addr,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if used.Swap(true) {
				return spent{c}, nil
			}
			return c, nil
		},
		Protocol: 2, Username: d.login.username, Password: password, DB: d.db,
		ClientName: clientName, DisableIdentity: true,
		MaxRetries: -1, DialerRetries: 1, PoolSize: 1, PipelinePoolSize: -1,
		ReadTimeout: reply, WriteTimeout: d.options.Timeout, PoolTimeout: d.options.Timeout,
		ContextTimeoutEnabled:    true,
		ConnMaxIdleTime:          -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// close ends the connection; whatever is under way on it fails.
func (w *wire) close() {
	_ = w.net.Close()
	_ = w.Client.Close()
}

// spent stands for the second connection of a client that has one. It fails when it is used and not when
// it is dialled: go-redis would look after a server that cannot be dialled with a goroutine of its own.
type spent struct{ net.Conn }

var errSpent = errors.New("the connection is closed")

func (spent) Read([]byte) (int, error)         { return 0, errSpent }
func (spent) Write([]byte) (int, error)        { return 0, errSpent }
func (spent) Close() error                     { return nil }
func (spent) SetDeadline(time.Time) error      { return nil }
func (spent) SetReadDeadline(time.Time) error  { return nil }
func (spent) SetWriteDeadline(time.Time) error { return nil }

// keepAlive finds a server that has gone without a word within half a minute.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 2}
}
