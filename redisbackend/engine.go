package redisbackend

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

const (
	// openTimeout is how long Open waits for the first attempts to connect.
	openTimeout = 5 * time.Second
	// closeTimeout is how long Close waits for what is under way.
	closeTimeout = 3 * time.Second
)

// Config is how an Engine is opened. DefaultConfig fills in what need not be chosen.
type Config struct {
	Link    link.Options // its Scripts and Hear are the engine's
	Prefix  string       // of all keys
	HashTag script.Tagging
	Limits  semaphore.Limits
	// Hold is how long a request without WAIT is kept while it cannot be decided.
	Hold time.Duration
	// ReconcileEvery is how often the books of all semaphores are looked at, by one server at a time.
	ReconcileEvery time.Duration
	// ReconcileGrace is how long a shortfall must stand, with nobody touching List or ZSET, until it is
	// restored without being asked for.
	ReconcileGrace time.Duration
	Logger         *slog.Logger
	Metrics        *Metrics
}

// DefaultConfig is the configuration of a server without flags, but for the Redis.
func DefaultConfig(t link.Target) Config {
	return Config{
		Link: link.DefaultOptions(t), Prefix: "sem:", HashTag: script.TagAuto, Limits: semaphore.DefaultLimits(),
		Hold: 5 * time.Second, ReconcileEvery: 10 * time.Second, ReconcileGrace: 3 * time.Second,
	}
}

// Engine keeps semaphores in a Redis. It implements [semaphore.Backend]. Open makes one.
type Engine struct {
	cfg    Config
	core   *core
	remote *remote

	ctx    context.Context // of what goes on by itself
	cancel context.CancelFunc
	work   sync.WaitGroup
	halted context.Context // ends when nobody is to wait for a decision any more
	halt   context.CancelFunc
	once   sync.Once
}

var _ semaphore.Backend = (*Engine)(nil)

// Open connects to a Redis. One that cannot be used as it is, is an error; one that cannot be reached at
// the moment is not, and [Engine.Ready] says so.
func Open(cfg Config) (*Engine, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	cluster := cfg.Link.Target.Mode == link.Cluster
	layout, err := script.NewLayout(cfg.Prefix, cfg.HashTag, cluster)
	if err != nil {
		return nil, fmt.Errorf("lay out the keys: %w", err)
	}
	e := &Engine{cfg: cfg, remote: newRemote(script.NewLibrary(layout), cfg.Limits, cluster)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.halted, e.halt = context.WithCancel(context.Background())
	e.core = newCore(e.remote, cfg.Limits, cfg.Hold, cfg.Metrics)
	e.core.office.window = max(leastWindow, 2*cfg.Link.Timeout)
	if cfg.Link.Replicas > 0 {
		e.core.office.window += cfg.Link.ReplicaTimeout
	}

	options := cfg.Link
	options.Scripts, options.Hear, options.Logger = e.remote.library.Scripts(), e.hear, cfg.Logger
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if e.remote.link, err = link.Open(ctx, options); err != nil {
		return nil, err
	}
	if !cluster {
		e.remote.link.Subscribe(layout.Channel(""))
	}
	cfg.Metrics.watch(&e.core.office, e.Ready)
	e.core.start()
	e.work.Go(func() { e.tend(e.ctx) })
	for range hunters {
		e.work.Go(func() { e.hunter(e.ctx) })
	}
	return e, nil
}

// Do implements semaphore.Backend. Requests for one semaphore that follow each other travel together.
func (e *Engine) Do(requests []semaphore.Request) []semaphore.Reply {
	replies := make([]semaphore.Reply, len(requests))
	for from := 0; from < len(requests); {
		to := from + 1
		switch r := requests[from].(type) {
		case semaphore.Scan:
			replies[from] = e.scan(r)
		default:
			for to < len(requests) && !scans(requests[to]) && requests[to].Semaphore() == r.Semaphore() {
				to++
			}
			e.core.do(r.Semaphore(), requests[from:to], replies[from:to])
		}
		from = to
	}
	return replies
}

// scans says that a request is not about one semaphore.
func scans(r semaphore.Request) bool {
	_, ok := r.(semaphore.Scan)
	return ok
}

// GiveBack implements semaphore.Backend.
func (e *Engine) GiveBack(key string, g *semaphore.Grant) { e.core.giveBack(key, g) }

// Ready says why Redis takes no calls of this server; nil: it does.
func (e *Engine) Ready() error { return e.remote.link.Ready() }

// Halt ends the wait for decisions: whoever waits for one is told that there is none. It may be called
// at any time, and before Close.
func (e *Engine) Halt() { e.halt() }

// Close ends everything. Those who wait are answered ErrShutdown; calls under way are waited for, for a
// few seconds. It may be called more than once.
func (e *Engine) Close() error {
	e.once.Do(func() {
		e.cancel()
		e.work.Wait()
		ctx, cancel := context.WithTimeout(e.halted, closeTimeout)
		defer cancel()
		e.core.close(ctx)
		e.remote.link.Close()
		e.halt()
	})
	return nil
}
