package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/semserver/semserver/redisbackend/script"
)

// view is who has which slot, as one node of a cluster sees it.
type view struct {
	owners [script.Slots]string // addresses; empty: nobody
	ok     bool                 // the node thinks that the cluster works
	epoch  uint64               // which grows with every change
}

func (v *view) missing() int {
	missing := 0
	for _, addr := range v.owners {
		if addr == "" {
			missing++
		}
	}
	return missing
}

// newer says whether this view is to be preferred.
func (v *view) newer(than *view) bool {
	switch {
	case than == nil:
		return true
	case v.ok != than.ok:
		return v.ok
	}
	return v.epoch > than.epoch
}

// best asks all nodes that we know of, at once, and returns the newest view.
func (s *slotted) best(ctx context.Context) (*view, error) {
	addrs := map[string]bool{}
	for _, a := range s.link.options.Target.Addrs {
		addrs[a] = true
	}
	s.mu.Lock()
	for a := range s.byAddr {
		addrs[a] = true
	}
	s.mu.Unlock()

	var mu sync.Mutex
	var best *view
	var errs []error
	var asked sync.WaitGroup
	for addr := range addrs {
		asked.Go(func() {
			v, err := s.ask(ctx, addr)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", addr, err))
			} else if v.newer(best) {
				best = v
			}
		})
	}
	asked.Wait()
	if best == nil {
		return nil, fmt.Errorf("ask for the nodes of the cluster: %w", errors.Join(errs...))
	}
	return best, nil
}

// ask gets the view of one node.
func (s *slotted) ask(ctx context.Context, addr string) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, s.link.options.Timeout)
	defer cancel()
	w, err := s.link.dialer.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer w.close()
	pipe := w.Pipeline()
	ranges, state := pipe.ClusterSlots(ctx), pipe.ClusterInfo(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		if strings.Contains(err.Error(), "cluster support disabled") {
			return nil, &misfit{"this server is not a node of a Redis Cluster: use redis:// or redis-sentinel://"}
		}
		return nil, err
	}
	info := fields(state.Val())
	v := &view{ok: info["cluster_state"] == "ok"}
	v.epoch, _ = strconv.ParseUint(info["cluster_current_epoch"], 10, 64)
	for _, r := range ranges.Val() {
		if len(r.Nodes) == 0 {
			continue
		}
		owner := r.Nodes[0].Addr
		if host, port, err := net.SplitHostPort(owner); err == nil && host == "" {
			owner = net.JoinHostPort(hostOf(addr), port) // a node that does not know its own name
		}
		for i := max(0, r.Start); i <= min(r.End, script.Slots-1); i++ {
			v.owners[i] = owner
		}
	}
	return v, nil
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
