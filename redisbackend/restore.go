package redisbackend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

const (
	// watchers is how many connections watch semaphores at a time.
	watchers = 8
	// watchedAtOnce is the most semaphores that one of them watches together.
	watchedAtOnce = 64
)

// heal restores shortfalls that stand for the grace: as many as fit in the time until the next pass, the
// others then.
func (p *pass) heal(ctx context.Context, short []string) {
	groups := p.groups(short)
	rounds := max(1, int(p.every/max(p.grace, time.Millisecond)))
	work := make(chan []string)
	var all sync.WaitGroup
	var mu sync.Mutex
	restless := map[string]bool{}
	for range min(watchers, len(groups)) {
		all.Go(func() {
			for names := range work {
				touched, err := p.restore(ctx, names)
				if err != nil && ctx.Err() == nil {
					p.log.Info("shortfalls could not be restored in this pass", "semaphores", len(names), "first", names[0], "error", err)
				}
				mu.Lock()
				for _, name := range names {
					restless[name] = touched
				}
				mu.Unlock()
			}
		})
	}
	for _, names := range groups[:min(len(groups), watchers*rounds)] {
		select {
		case work <- names:
		case <-ctx.Done():
		}
	}
	close(work)
	all.Wait()
	p.restless = restless
}

// groups is what is watched together, in any order. Whoever touches one of a group spoils it for the
// others, so those that were in a group that was touched are watched each by itself; on a Redis Cluster
// all are, because a transaction has one slot.
func (p *pass) groups(short []string) (groups [][]string) {
	var calm []string
	for _, name := range short {
		if p.restless[name] || p.remote.cluster {
			groups = append(groups, []string{name})
		} else {
			calm = append(calm, name)
		}
	}
	size := min(watchedAtOnce, (len(calm)+watchers-1)/watchers)
	for len(calm) > 0 {
		n := min(size, len(calm))
		groups = append(groups, calm[:n])
		calm = calm[n:]
	}
	rand.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	return groups
}

// restore puts back the permits that the books of semaphores lack, if nobody touches their Lists and
// ZSETs for the grace, and reports whether somebody has. Whoever takes a permit by hand and says so a
// moment later is not mistaken for one who has died in between.
func (p *pass) restore(ctx context.Context, names []string) (touched bool, err error) {
	layout := p.remote.library.Layout()
	s, err := p.remote.link.Session(ctx, layout.Permits(names[0]))
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer s.Close()
	watch := []any{"WATCH"}
	for _, name := range names {
		watch = append(watch, layout.Permits(name), layout.Holders(name))
	}
	if _, err := s.Do(ctx, watch...); err != nil {
		return false, fmt.Errorf("watch: %w", err)
	}
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	calls := make([]script.Call, len(names))
	for i, name := range names {
		r := semaphore.Reconcile{Key: name}
		calls[i] = p.remote.library.Reconcile(p.core.office.stamp(name), r, p.core.office.ticket(), p.remote.limits.MaxSemaphores)
	}
	replies, err := transaction(ctx, s, calls)
	if err != nil || replies == nil {
		return err == nil, err
	}
	for i, reply := range replies {
		p.restored(names[i], reply)
	}
	return false, nil
}

// restored takes in what was restored of one semaphore.
func (p *pass) restored(name string, reply any) {
	a, err := script.ReadAnswer(semaphore.Reconcile{Key: name}, reply)
	if err != nil {
		p.log.Info("a shortfall could not be restored in this pass", "semaphore", name, "error", err)
		return
	}
	if n, ok := a.Value.(semaphore.Number); ok && n > 0 {
		p.metrics.reconciled.Add(float64(n))
		p.log.Info("permits that were lost are back in circulation", "semaphore", name, "permits", int64(n))
		p.core.wake(name)
	}
}

// transaction makes calls in a transaction. No replies: what is watched was touched.
func transaction(ctx context.Context, s *link.Session, calls []script.Call) ([]any, error) {
	if _, err := s.Do(ctx, "MULTI"); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	for _, c := range calls {
		evalsha := []any{"EVALSHA", c.Script.SHA, len(c.Keys)}
		for _, k := range c.Keys {
			evalsha = append(evalsha, k)
		}
		for _, a := range c.Args {
			evalsha = append(evalsha, a)
		}
		if _, err := s.Do(ctx, evalsha...); err != nil {
			return nil, fmt.Errorf("queue: %w", err)
		}
	}
	reply, err := s.Do(ctx, "EXEC")
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	replies, _ := reply.([]any)
	if replies != nil && len(replies) != len(calls) {
		return nil, fmt.Errorf("commit: got %d replies, want %d", len(replies), len(calls))
	}
	return replies, nil
}
