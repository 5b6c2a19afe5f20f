package redisbackend

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// TestNoFaultLosesOrLeaksAPermit has clients acquire, wait, leave, cancel and release while calls are
// refused, delayed and lost, and looks whether the books and what clients were told agree at the end.
func TestNoFaultLosesOrLeaksAPermit(t *testing.T) {
	for seed := range uint64(150) {
		inBubble(t, 2, func(b *bubble) {
			dice := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			b.books.set(func(int) fault {
				mu.Lock()
				defer mu.Unlock()
				if dice.IntN(4) > 0 {
					return none
				}
				return fault(dice.IntN(7))
			})
			var clients sync.WaitGroup
			for n := range 8 {
				c := newRandomClient(t, b.do, testKey, name(n), seed, time.Second)
				clients.Go(func() { c.rounds(12) })
			}
			clients.Wait()
			b.books.set(nil)
			time.Sleep(10 * time.Second) // what was uncertain is given back
			b.held(0)
			if got := b.core.office.waiters.Load(); got != 0 {
				t.Errorf("seed %d: waiters: got %d, want 0", seed, got)
			}
		})
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// randomClient is one holder, whose grant is its own: it holds at most one at a time.
type randomClient struct {
	testing.TB
	do          func(semaphore.Request) semaphore.Reply
	key, holder string
	dice        *rand.Rand
	second      time.Duration // what a second is to it, when it waits or holds
	late        time.Duration // how much later than it must, an answer may come

	answered time.Time // the last wait
}

func newRandomClient(t testing.TB, do func(semaphore.Request) semaphore.Reply, key, holder string, seed uint64, second time.Duration) *randomClient {
	number := uint64(0)
	for _, b := range []byte(holder) {
		number = 31*number + uint64(b)
	}
	return &randomClient{TB: t, do: do, key: key, holder: holder, dice: rand.New(rand.NewPCG(seed, number)), second: second}
}

func (c *randomClient) upTo(most time.Duration) time.Duration {
	return time.Duration(c.dice.Int64N(int64(most)))
}

func (c *randomClient) pause(most time.Duration) { <-time.After(c.upTo(most)) }

func (c *randomClient) rounds(n int) {
	for range n {
		c.round()
	}
}

// round acquires in some way and, if that succeeds, releases.
func (c *randomClient) round() {
	c.pause(c.second / 3)
	wait := []time.Duration{0, c.second / 5, 2 * c.second}[c.dice.IntN(3)]
	began := time.Now()
	r := c.do(semaphore.Acquire{Key: c.key, Holder: c.holder, Permits: 1, Lease: time.Hour, Wait: wait})
	took := time.Since(began)
	if w, ok := r.Value.(*semaphore.Waiting); ok {
		r = c.await(w)
		took = c.answered.Sub(began)
	}
	limit := wait + time.Second + c.late
	if wait == 0 {
		limit = 5*time.Second + 2*lookEvery + c.late
	}
	if took > limit {
		c.Errorf("%s: a WAIT of %v was answered %v, %v after %v", c.holder, wait, r.Value, r.Err, took)
	}
	if _, ok := r.Value.(*semaphore.Grant); ok {
		c.pause(c.second / 2)
		c.giveBack()
	}
}

// giveBack releases what the client was granted. Once that is uncertain, it may have been done.
func (c *randomClient) giveBack() {
	for uncertain := false; ; uncertain = true {
		r := c.do(semaphore.Release{Key: c.key, Holder: c.holder})
		if r.Err != nil {
			continue
		}
		if r.Value != semaphore.Number(1) && !uncertain {
			c.Errorf("%s: release of what it was granted: got %v, want 1", c.holder, r.Value)
		}
		return
	}
}

// await waits for the end of a wait, and sometimes ends it.
func (c *randomClient) await(w *semaphore.Waiting) semaphore.Reply {
	select {
	case r := <-w.Done:
		c.answered = time.Now()
		return r
	case <-time.After(c.upTo(3 * c.second)):
	}
	switch c.dice.IntN(3) {
	case 0:
		w.Leave()
	case 1:
		w.Quit()
	case 2:
		var cancelled sync.WaitGroup
		cancelled.Go(func() { c.do(semaphore.Cancel{Key: c.key, Holder: c.holder}) })
		defer cancelled.Wait()
	}
	r := <-w.Done
	c.answered = time.Now()
	return r
}
