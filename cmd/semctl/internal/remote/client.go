package remote

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// client is a client of one server, which sends every command once. It sets no time limit of its own:
// every command has a context with a deadline.
type client struct {
	*redis.Client
	connected atomic.Bool // at some time; before, nothing can have been sent
}

func newClient(addr string, cfg Config) *client {
	c := &client{}
	c.Client = redis.NewClient(&redis.Options{
		Network:               network(addr),
		Addr:                  addr,
		Password:              cfg.Password,
		ClientName:            cfg.Name,
		Protocol:              2, // maps keep their order
		MaxRetries:            -1,
		DialerRetries:         1,
		ReadTimeout:           -1,
		WriteTimeout:          -1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		Dialer:                dialer(cfg.TLS),
		OnConnect: func(context.Context, *redis.Conn) error {
			c.connected.Store(true)
			return nil
		},
	})
	return c
}

// dialTimeout bounds one attempt to connect, so that a host that drops packets does not use up the
// time in which others could answer.
const dialTimeout = 2 * time.Second

func dialer(secure *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		conn, err := Dial(ctx, addr, secure)
		if err != nil {
			return nil, &unsent{err}
		}
		return conn, nil
	}
}

// Dial connects to an address that ParseAddr returned; by TLS where a configuration is given and the
// address is not that of a Unix socket.
func Dial(ctx context.Context, addr string, secure *tls.Config) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{
		// A machine that has vanished is noticed in 20 s, also by who waits in line.
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 2,
	}}
	if secure == nil || network(addr) == "unix" {
		return plain.DialContext(ctx, network(addr), addr)
	}
	return (&tls.Dialer{NetDialer: plain, Config: secure}).DialContext(ctx, network(addr), addr)
}
