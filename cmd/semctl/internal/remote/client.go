package remote

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// newClient returns a client of one server that sends every command once. It sets no time limit of
// its own: every command has a context with a deadline.
func newClient(addr string, cfg Config) *redis.Client {
	return redis.NewClient(&redis.Options{
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
	})
}

// dialTimeout bounds one attempt to connect, so that a host that drops packets does not use up the
// time in which others could answer.
const dialTimeout = 2 * time.Second

func dialer(secure *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		dial := plain.DialContext
		if secure != nil && network != "unix" {
			dial = (&tls.Dialer{NetDialer: plain, Config: secure}).DialContext
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
}
