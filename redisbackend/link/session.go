package link

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Session is a connection of its own to one server, for what a script call is not enough for: SCAN,
// WATCH and MULTI, a lease. It is for one goroutine. Nothing is sent twice. It ends when another server
// takes over from this one; after an error that is not a reply it is of no use any more.
type Session struct {
	// Addr is the server.
	Addr string
	node *node
	wire *wire
}

// Session connects to the server that has a key.
func (l *Link) Session(ctx context.Context, key string) (*Session, error) {
	n := l.fleet.node(key)
	if n == nil {
		return nil, down(l.absent())
	}
	return l.session(ctx, n)
}

// Each calls visit with a session to every server in turn, until one fails.
func (l *Link) Each(ctx context.Context, visit func(*Session) error) error {
	if err := l.fleet.ready(); err != nil {
		return beforehand(err)
	}
	for _, n := range l.fleet.nodes() {
		s, err := l.session(ctx, n)
		if err != nil {
			return err
		}
		err = visit(s)
		s.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Link) session(ctx context.Context, n *node) (*Session, error) {
	addr, err := n.where(ctx)
	if err != nil {
		return nil, down(err)
	}
	w, err := l.dialer.dial(ctx, addr)
	if err != nil {
		return nil, beforehand(err)
	}
	n.watch(w)
	return &Session{addr, n, w}, nil
}

// Close ends the connection.
func (s *Session) Close() {
	s.node.forget(s.wire)
	s.wire.close()
}

// Do sends a command and returns its reply: nil, an int64, a string or an []any of these. Errors are
// those of [Link.Send].
func (s *Session) Do(ctx context.Context, args ...any) (any, error) {
	before := s.wire.sent.Load()
	reply, err := s.wire.Client.Do(ctx, args...).Result()
	var refusal redis.Error
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	case errors.As(err, &refusal):
		return nil, verdict(refusal)
	case s.wire.sent.Load() == before:
		return nil, down(err)
	}
	return nil, unknown(err)
}
