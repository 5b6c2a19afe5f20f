package top

import (
	"context"
	"errors"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// source is where the view has its news from.
type source interface {
	look(ctx context.Context) (Look, error)
	detail(ctx context.Context, key string) (Detail, error)
	release(ctx context.Context, key string, h remote.Holder) (done bool, err error)
	cancel(ctx context.Context, key string, w remote.Waiter) (done bool, err error)
}

// Detail is who holds a semaphore, and who waits for it.
type Detail struct {
	Key     string
	Holders []remote.Holder
	Waiters []remote.Waiter
}

// maxRows is how many holders, and how many waiters, are listed of one semaphore.
const maxRows = 1000

// servers is the source that asks servers.
type servers struct {
	*remote.Servers
	match string
	limit int
}

func (s servers) look(ctx context.Context) (Look, error) {
	l := Look{}
	for f, err := range s.Semaphores(ctx, s.match) {
		if err != nil {
			return Look{}, err
		}
		if len(l.Semaphores) == s.limit {
			l.Cut = true
			break
		}
		l.Semaphores = append(l.Semaphores, seen(f))
	}
	l.At = time.Now()
	nodes, err := s.Nodes(ctx)
	var refused *remote.Refusal
	if err != nil && !errors.As(err, &refused) { // where there is no cluster there are no nodes to list
		return Look{}, err
	}
	for _, n := range nodes {
		l.Nodes = append(l.Nodes, Node{Label: n.Text("label"), Address: n.Text("address"), Role: n.Text("role")})
	}
	for _, r := range s.Reach(ctx) {
		if r.Err != nil {
			l.Away = append(l.Away, r)
		}
	}
	return l, nil
}

func (s servers) detail(ctx context.Context, key string) (Detail, error) {
	d := Detail{Key: key}
	for h, err := range s.Holders(ctx, key) {
		if err != nil {
			return Detail{}, err
		}
		if d.Holders = append(d.Holders, h); len(d.Holders) == maxRows {
			break
		}
	}
	for w, err := range s.Waiters(ctx, key) {
		if err != nil {
			return Detail{}, err
		}
		if d.Waiters = append(d.Waiters, w); len(d.Waiters) == maxRows {
			break
		}
	}
	return d, nil
}

// release gives back the very grant that was seen; a raw holder in a Redis has no token.
func (s servers) release(ctx context.Context, key string, h remote.Holder) (bool, error) {
	words := []any{"SEM.RELEASE", key, h.Holder}
	if h.Token > 0 {
		words = append(words, "TOKEN", h.Token)
	}
	reply, err := s.Do(ctx, remote.Words(words...))
	return reply.Value == any(int64(1)) || reply.Doubtful, err
}

func (s servers) cancel(ctx context.Context, key string, w remote.Waiter) (bool, error) {
	reply, err := s.Do(ctx, remote.Words("SEM.CANCEL", key, w.Holder))
	return reply.Value == any(int64(1)) || reply.Doubtful, err
}
