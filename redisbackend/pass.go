package redisbackend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

const (
	// tendsAtOnce is how many semaphores the pass looks after at a time.
	tendsAtOnce = 32
	// tendsInARow is how often, at most, a pass goes on with a semaphore that has more to do.
	tendsInARow = 200
	// keysAtOnce and scansPerPass bound how much of the keyspace a pass goes through in search of
	// semaphores that the registry does not name. The next one goes on from there.
	keysAtOnce, scansPerPass = 1000, 20
	// passTerms is for how many intervals the turn is taken: a server that has died is replaced then.
	passTerms = 2
)

// pass looks after all semaphores of a Redis from time to time, by one server at a time.
type pass struct {
	core    *core
	remote  *remote
	turn    turn
	every   time.Duration
	grace   time.Duration
	metrics *Metrics
	log     *slog.Logger
	cursors map[string]string // by server: how far its keys have been gone through

	restless map[string]bool // semaphores that were touched while they were watched the last time
}

func newPass(e *Engine) *pass {
	return &pass{
		core: e.core, remote: e.remote, every: e.cfg.ReconcileEvery, grace: e.cfg.ReconcileGrace, metrics: e.cfg.Metrics, log: e.cfg.Logger,
		turn: turn{
			link: e.remote.link, key: e.cfg.Prefix + ":turn", me: fmt.Sprintf("%x", e.core.office.incarnation),
			term: passTerms * e.cfg.ReconcileEvery,
		},
		cursors: map[string]string{},
	}
}

// tend makes passes until ctx ends.
func (e *Engine) tend(ctx context.Context) {
	p := newPass(e)
	every := time.NewTicker(e.cfg.ReconcileEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := p.turn.giveUp(last); err != nil {
				p.log.Debug("the turn to reconcile is left to run out", "error", err)
			}
			return
		case <-every.C:
			e.remote.sweepEars()
			if err := p.run(ctx); err != nil && ctx.Err() == nil {
				p.log.Warn("the periodic reconcile pass was broken off", "error", err)
			}
		}
	}
}

// run makes one pass, if it is this server's turn.
func (p *pass) run(ctx context.Context) error {
	began := time.Now()
	if mine, err := p.turn.take(ctx); !mine {
		return err
	}
	registered, err := p.tendRegistered(ctx)
	if err != nil {
		return err
	}
	p.metrics.removed.Add(float64(registered.gone))
	others, err := p.tendFound(ctx)
	if err != nil {
		return err
	}
	p.heal(ctx, append(registered.short, others.short...))
	p.metrics.passes.Inc()
	p.metrics.passSeconds.Observe(time.Since(began).Seconds())
	return nil
}

// findings are what was found when semaphores were looked after.
type findings struct {
	short []string // those whose books lack permits
	gone  int      // how many there are no more
}

// tendRegistered looks after the semaphores that the registry names.
func (p *pass) tendRegistered(ctx context.Context) (f findings, err error) {
	for s := (semaphore.Scan{Count: semaphore.MaxCount}); ; {
		page, err := p.remote.scan(s)
		if err != nil {
			return f, fmt.Errorf("read the registry: %w", err)
		}
		if err := p.tendAll(ctx, page.Keys, &f); err != nil {
			return f, err
		}
		if s.Cursor = page.Next; s.Cursor == 0 {
			return f, nil
		}
	}
}

// tendFound looks after semaphores found among the keys of every server.
func (p *pass) tendFound(ctx context.Context) (f findings, err error) {
	layout := p.remote.library.Layout()
	err = p.remote.link.Each(ctx, func(s *link.Session) error {
		for range scansPerPass {
			keys, err := p.scanKeys(ctx, s, layout.Match()+":meta")
			if err != nil {
				return err
			}
			var names []string
			for _, k := range keys {
				if name, ok := layout.Semaphore(k); ok {
					names = append(names, name)
				}
			}
			if err := p.tendAll(ctx, names, &f); err != nil {
				return err
			}
			if p.cursors[s.Addr] == "0" {
				break
			}
		}
		return nil
	})
	return f, err
}

// scanKeys reads the next part of a server's keys.
func (p *pass) scanKeys(ctx context.Context, s *link.Session, pattern string) ([]string, error) {
	cursor := p.cursors[s.Addr]
	if cursor == "" {
		cursor = "0"
	}
	reply, err := s.Do(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", keysAtOnce)
	if err != nil {
		return nil, fmt.Errorf("scan the keys: %w", err)
	}
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return nil, fmt.Errorf("scan the keys: got %d parts, want 2", len(parts))
	}
	p.cursors[s.Addr], _ = parts[0].(string)
	found, _ := parts[1].([]any)
	var keys []string
	for _, k := range found {
		if key, ok := k.(string); ok {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// tendAll looks after semaphores, some at a time.
func (p *pass) tendAll(ctx context.Context, names []string, f *findings) error {
	for from := 0; from < len(names); from += tendsAtOnce {
		if mine, err := p.turn.keep(ctx); !mine || ctx.Err() != nil {
			return fmt.Errorf("keep the turn: it was lost (%w)", firstOf(err, ctx.Err(), errTurn))
		}
		if err := p.tendSome(names[from:min(from+tendsAtOnce, len(names))], f); err != nil {
			return err
		}
	}
	return nil
}

// tendSome looks after semaphores all at the same time, until none has more to be done at once.
func (p *pass) tendSome(names []string, f *findings) error {
	for round := 0; len(names) > 0 && round < tendsInARow; round++ {
		calls := make([]script.Call, len(names))
		for i, name := range names {
			calls[i] = p.remote.library.Tend(p.core.office.stamp(name), name)
		}
		replies, errs := p.remote.each(calls)
		var again []string
		for i, reply := range replies {
			var refused *semaphore.Error
			switch err := errs[i]; {
			case err == nil:
			case errors.As(err, &refused) && !errors.Is(err, semaphore.ErrDown): // such as a key of another type
				p.log.Warn("a semaphore cannot be looked after", "semaphore", names[i], "error", err)
				continue
			default:
				return fmt.Errorf("look after semaphores: %w", err)
			}
			drift, err := script.ReadTend(reply)
			if err != nil {
				continue // it was overtaken by a request; the next pass comes soon
			}
			p.metrics.expired.Add(float64(drift.Ended))
			if drift.Freed > 0 {
				p.core.wake(names[i])
			}
			switch {
			case drift.Gone:
				f.gone++
			case drift.More:
				again = append(again, names[i])
			case drift.Missing > 0:
				f.short = append(f.short, names[i])
			}
		}
		names = again
	}
	return nil
}
