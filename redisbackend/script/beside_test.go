package script

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// Clients who work by hand and servers take permits of one semaphore at the same time, and tending goes on
// beside them.
func TestRawClientsAndServersShareTheCapacity(t *testing.T) {
	const capacity, rounds = 3, 60
	r := newRig(t)
	r.create("k", capacity)
	var inUse atomic.Int64
	var workers sync.WaitGroup
	hold := func(who string) {
		if n := inUse.Add(1); n > capacity {
			t.Errorf("%s: %d permits in use, want at most %d", who, n, capacity)
		}
		inUse.Add(-1)
	}
	for w := range 3 {
		workers.Go(func() {
			for i := 0; i < rounds; {
				holder := fmt.Sprintf("raw-%d-%d", w, i)
				if r.take("k", holder, time.Minute) {
					hold(holder)
					r.recipe(releaseRecipe, "k", holder)
					i++
				}
			}
		})
		server := r.beside()
		server.server = uint64(100 + w)
		workers.Go(func() {
			for i := 0; i < rounds; {
				holder := fmt.Sprintf("ours-%d-%d", w, i)
				if g, ok := server.ask(semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Lease: time.Minute}).Value.(*semaphore.Grant); ok {
					hold(holder)
					equal(t, "release", server.number(semaphore.Release{Key: "k", Holder: holder, Token: g.Token}), 1)
					i++
				}
			}
		})
	}
	done := make(chan struct{})
	tending := r.beside()
	tending.server = 200
	var tender sync.WaitGroup
	tender.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				tending.tend("k")
			}
		}
	})
	workers.Wait()
	close(done)
	tender.Wait()

	r.books("k", capacity, 0)
	i := r.info("k")
	equal(t, "grants", i.Counters.GrantsImmediate, 3*rounds)
	equal(t, "missing", i.Missing, 0)
	equal(t, "records", r.do("HLEN", "sem:k:grants"), any(int64(0)))
}
