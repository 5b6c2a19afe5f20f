package remote

import (
	"context"
	"sync"
)

// Reach is whether a server answers.
type Reach struct {
	Addr string
	Err  error // nil: it does
}

// Reach asks every server, at the same time, for a sign of life.
func (s *Servers) Reach(ctx context.Context) []Reach {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	all := make([]Reach, len(s.clients))
	var asking sync.WaitGroup
	for i, c := range s.clients {
		all[i] = Reach{s.cfg.Addrs[i], errClosed}
		asking.Add(1)
		started := s.start(func() {
			defer asking.Done()
			all[i].Err = c.Ping(ctx).Err()
		})
		if !started {
			asking.Done()
		}
	}
	asking.Wait()
	return all
}
