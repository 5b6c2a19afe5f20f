package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// notes is a logger of go-redis.
type notes struct {
	mu    sync.Mutex
	lines []string
}

// Printf implements it.
func (n *notes) Printf(_ context.Context, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func TestServersThatCannotBeReachedAreNotWrittenToStderr(t *testing.T) {
	said := &notes{}
	redis.SetLogger(said)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // nobody listens there
	c, err := New(Config{Addrs: []string{l.Addr().String()}, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}

	_, err = c.Acquire(t.Context(), "loader")

	var refused *net.OpError
	if !errors.Is(err, ErrUnavailable) || !errors.As(err, &refused) {
		t.Errorf("got %v, want %v for a refused connection", err, ErrUnavailable)
	}
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if len(said.lines) > 0 {
		t.Errorf("go-redis wrote %q, want nothing", said.lines)
	}
}
