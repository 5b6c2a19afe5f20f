package link

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/redisd"
)

// tally is how the calls of a load ended, for one key.
type tally struct{ done, unknown, other int64 }

// load increments keys until it is ended, one call at a time for each of its callers.
type load struct {
	testing.TB
	link *Link
	stop chan struct{}
	work sync.WaitGroup

	mu      sync.Mutex
	tallies map[string]*tally
	codes   map[string]int
	slowest time.Duration
}

// start begins a load of some callers on each key.
func start(t testing.TB, l *Link, callers int, keys ...string) *load {
	t.Helper()
	o := &load{TB: t, link: l, stop: make(chan struct{}), tallies: map[string]*tally{}, codes: map[string]int{}}
	for _, k := range keys {
		o.tallies[k] = &tally{}
	}
	for _, k := range keys {
		for range callers {
			o.work.Go(func() { o.repeat(k) })
		}
	}
	t.Cleanup(o.end)
	o.progress()
	return o
}

func (o *load) repeat(key string) {
	for {
		select {
		case <-o.stop:
			return
		default:
		}
		began := time.Now()
		r := <-send(o.link, increment(key))
		o.note(key, r, time.Since(began))
		if r.err != nil {
			<-time.After(time.Millisecond) // as a client would, before it asks again
		}
	}
}

func (o *load) note(key string, r result, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slowest = max(o.slowest, took)
	c := code(r.err)
	o.codes[c]++
	switch c {
	case "", "unreplicated":
		o.tallies[key].done++
	case "unknown":
		o.tallies[key].unknown++
	default:
		o.tallies[key].other++
	}
}

// progress waits until calls of every key have been done that were begun after it was called.
func (o *load) progress() {
	o.Helper()
	was := o.counts()
	until(o, "calls are done", func() bool {
		for key, now := range o.counts() {
			if now.done < was[key].done+100 {
				return false
			}
		}
		return true
	})
}

func (o *load) counts() map[string]tally {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]tally{}
	for key, t := range o.tallies {
		all[key] = *t
	}
	return all
}

// end waits for the last answers. It may be called again.
func (o *load) end() {
	select {
	case <-o.stop:
	default:
		close(o.stop)
	}
	o.work.Wait()
}

// loss says whether the server may have lost what it has acknowledged.
type loss bool

const (
	lossless loss = false
	lossy    loss = true
)

// isTrue ends the load and compares what callers were told with what Redis counts: what was done was
// done once, and nothing was that was said not to be.
func (o *load) isTrue(kind loss, owner func(key string) *redisd.Server) {
	o.Helper()
	o.end()
	for key, told := range o.counts() {
		reply, err := owner(key).Do("GET", key)
		if err != nil {
			o.Fatal(err)
		}
		counted, _ := strconv.ParseInt(fmt.Sprint(reply), 10, 64)
		if counted > told.done+told.unknown || counted < told.done && kind == lossless {
			o.Errorf("%s: got %d in Redis, want %d and at most %d more", key, counted, told.done, told.unknown)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Logf("answers: %v, slowest after %v", o.codes, o.slowest.Round(time.Millisecond))
}

// only fails for answers that are not among these codes; "" is success.
func (o *load) only(codes ...string) {
	o.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	known := map[string]bool{"": true}
	for _, c := range codes {
		known[c] = true
	}
	for c, n := range o.codes {
		if !known[c] {
			o.Errorf("got %d answers %s, want none", n, c)
		}
	}
}

func always(s *redisd.Server) func(string) *redisd.Server {
	return func(string) *redisd.Server { return s }
}
