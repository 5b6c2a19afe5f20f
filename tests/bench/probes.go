package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

// probes are clients that acquire and release, one request at a time, and time every acquire.
type probes struct {
	key  string
	stop chan struct{}
	work sync.WaitGroup

	mu       sync.Mutex
	taken    []sample
	failures []error
}

// sample is one acquire.
type sample struct {
	began time.Time
	took  time.Duration
}

// startProbes starts clients, spread over the addresses, on a semaphore that is there; end ends them.
func startProbes(key string, count int, addrs ...string) *probes {
	p := &probes{key: key, stop: make(chan struct{})}
	for i := range count {
		p.work.Go(func() {
			taken, err := p.probe(addrs[i%len(addrs)], fmt.Sprint("probe", i))
			p.mu.Lock()
			defer p.mu.Unlock()
			p.taken, p.failures = append(p.taken, taken...), append(p.failures, err)
		})
	}
	return p
}

func (p *probes) probe(addr, holder string) ([]sample, error) {
	conn, err := resp.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var taken []sample
	for {
		select {
		case <-p.stop:
			return taken, nil
		default:
		}
		began := time.Now()
		if err := isGrant(conn.Do("SEM.ACQUIRE", p.key, "HOLDER", holder)); err != nil {
			return nil, err
		}
		taken = append(taken, sample{began, time.Since(began)})
		if _, err := conn.Do("SEM.RELEASE", p.key, holder); err != nil {
			return nil, err
		}
	}
}

// end ends the clients and returns their acquires.
func (p *probes) end() ([]sample, error) {
	close(p.stop)
	p.work.Wait()
	return p.taken, errors.Join(p.failures...)
}

// latency is how long acquires took, in milliseconds.
type latency struct{ p99, worst float64 }

func (l latency) String() string { return fmt.Sprintf("p99 %.1f ms, worst %.1f ms", l.p99, l.worst) }

// during is the latency of the acquires that were under way at some instant between from and to.
func during(taken []sample, from, to time.Time) (latency, error) {
	var times []time.Duration
	for _, s := range taken {
		if s.began.Before(to) && s.began.Add(s.took).After(from) {
			times = append(times, s.took)
		}
	}
	if len(times) == 0 {
		return latency{}, errors.New("no acquire was timed")
	}
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	return latency{p99: ms(times[len(times)*99/100]), worst: ms(times[len(times)-1])}, nil
}

// typical is the median of the p99s, and the worst of all.
func typical(rounds []latency) latency {
	var p99s []float64
	var all latency
	for _, l := range rounds {
		p99s, all.worst = append(p99s, l.p99), max(all.worst, l.worst)
	}
	all.p99 = median(p99s)
	return all
}
