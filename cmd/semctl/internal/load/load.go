package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// Config says what the load is. Check refuses what cannot be.
type Config struct {
	Servers      remote.Config
	Redis        bool          // the addresses are those of a Redis
	Clients      int           // connections, spread over the addresses
	Pipeline     int           // requests that a client sends in one go
	Semaphores   int           // clients are spread over them too
	Capacity     int64         // of each; 0: enough for everybody
	Wait         time.Duration // how long a client waits in line; 0: not at all
	Hold         time.Duration // how long a permit is held
	AcquiresOnly bool          // nothing is released
	Rate         float64       // acquires per second in all; 0: as fast as it goes
	Warmup       time.Duration // before anything counts
	For          time.Duration
	Requests     int64 // acquires, in place of For; 0: no limit
}

// Check refuses a load that cannot be.
func (c Config) Check() error {
	switch {
	case c.Clients < 1 || c.Pipeline < 1 || c.Semaphores < 1:
		return errors.New("clients, pipeline and semaphores are at least 1")
	case c.Capacity < 0 || c.Rate < 0 || c.Requests < 0:
		return errors.New("a capacity, rate or number of requests is not negative")
	case c.Wait < 0 || c.Hold < 0 || c.Warmup < 0:
		return errors.New("a time is not negative")
	case c.Requests == 0 && c.For <= 0:
		return errors.New("a load lasts for some time, or for some requests")
	case c.Wait > 0 && c.Pipeline > 1:
		return errors.New("a request that waits holds up those behind it: a wait and a pipeline do not go together")
	case c.Wait > 0 && c.AcquiresOnly:
		return errors.New("without releases a wait would never end")
	case c.Redis && c.AcquiresOnly && c.Capacity == 0 && c.Requests == 0:
		return errors.New("a Redis without releases needs a number of requests, or a capacity")
	}
	return nil
}

// endless is the capacity that is enough for everybody where nothing is released, for whatever time.
const endless = 1 << 31

// capacity is how many permits each semaphore gets.
func (c Config) capacity() int64 {
	switch {
	case c.Capacity > 0:
		return c.Capacity
	case c.AcquiresOnly && c.Requests == 0:
		return endless
	case c.AcquiresOnly:
		return c.Requests + int64(c.Clients*c.Pipeline)
	}
	return int64(c.Clients * c.Pipeline)
}

// run is one run.
type run struct {
	cfg      Config
	target   target
	keys     []string
	crowds   []crowd // of each key
	records  []*record
	gap      *gap         // of all addresses together
	holders  atomic.Int64 // ids given out
	left     atomic.Int64 // of cfg.Requests
	prefix   string       // of every name that the run makes
	stopping context.Context
}

// Run makes the semaphores, puts the load on, and removes them again. It ends early when ctx does; what
// was measured until then is returned.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.Check(); err != nil {
		return Report{}, err
	}
	r := &run{cfg: cfg, target: semserver{}, gap: newGap(), prefix: "semctl-bench-" + strings.ToLower(rand.Text()[:8])}
	if cfg.Redis {
		r.target = &redis{}
	}
	for i := range cfg.Semaphores {
		r.keys = append(r.keys, fmt.Sprintf("%s-%d", r.prefix, i))
	}
	r.crowds = make([]crowd, len(r.keys))
	for _, addr := range cfg.Servers.Addrs {
		r.records = append(r.records, newRecord(addr))
	}
	r.left.Store(cfg.Requests)
	if err := r.once(ctx, func(c *conn) error { return r.target.prepare(c, r.keys, cfg.capacity()) }); err != nil {
		return Report{}, err
	}
	rep, err := r.measure(ctx)
	cleaned := r.once(context.WithoutCancel(ctx), func(c *conn) error { return r.target.clean(c, r.keys) })
	return rep, errors.Join(err, cleaned)
}

// once does something on a connection of its own, to the first address that answers.
func (r *run) once(ctx context.Context, do func(*conn) error) error {
	var errs []error
	for _, addr := range r.cfg.Servers.Addrs {
		c, err := dial(ctx, addr, r.cfg.Servers)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		defer c.net.Close()
		if err = do(c); err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// drainTime is how long clients have at the end to come through the line and give back their permits.
const drainTime = 2 * time.Second

// measure lets the clients work.
func (r *run) measure(ctx context.Context) (Report, error) {
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	r.stopping = stopping
	cut, cutNow := context.WithCancel(context.WithoutCancel(ctx))
	defer cutNow()

	began := time.Now()
	if r.cfg.Warmup == 0 {
		r.count(true) // before the first client begins: no request of a few may be missed
	}
	clients := sync.WaitGroup{}
	failures := make(chan error, r.cfg.Clients)
	for i := range r.cfg.Clients {
		clients.Go(func() { failures <- newWorker(r, i).work(cut) })
	}
	finished := make(chan struct{})
	go func() { clients.Wait(); close(finished) }()

	if r.cfg.Warmup > 0 {
		pause(stopping, finished, r.cfg.Warmup)
		began = time.Now()
		r.count(true)
	}
	length := r.cfg.For
	if r.cfg.Requests > 0 {
		length = 1<<63 - 1
	}
	pause(stopping, finished, length)
	elapsed := time.Since(began)
	r.count(false)
	stop()
	pause(cut, finished, drainTime)
	cutNow()
	<-finished
	return r.result(elapsed, failures)
}

// result is the report, or why there is none: no client has ever got through.
func (r *run) result(elapsed time.Duration, failures chan error) (Report, error) {
	rep := report(r.records, elapsed)
	rep.Total.Gap = r.gap.value()
	rep.Capacity = r.cfg.capacity()
	for i := range r.crowds {
		rep.Most = max(rep.Most, r.crowds[i].most.Load())
	}
	close(failures)
	var errs []error
	for err := range failures {
		errs = append(errs, err)
	}
	if rep.Total.Granted == 0 && rep.Total.Refused == 0 {
		return rep, fmt.Errorf("nothing was granted or refused: %w", errors.Join(first(errs), errors.New(summary(rep.Total.Errors))))
	}
	return rep, nil
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func summary(counts map[string]int64) string {
	var parts []string
	for code, n := range counts {
		parts = append(parts, fmt.Sprintf("%d × %s", n, code))
	}
	return strings.Join(parts, ", ")
}

// count begins or ends the time that counts.
func (r *run) count(on bool) {
	if on {
		r.gap.begin()
	} else {
		r.gap.end()
	}
	for _, one := range r.records {
		if on {
			one.gap.begin()
		} else {
			one.gap.end()
		}
		one.count(on)
	}
}

// pause waits, until the clients have finished or ctx has ended at the latest.
func pause(ctx context.Context, finished <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-finished:
	case <-timer.C:
	}
}
