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
				return fault(dice.IntN(5))
			})
			var clients sync.WaitGroup
			for n := range 8 {
				c := &randomClient{bubble: b, holder: name(n), dice: rand.New(rand.NewPCG(seed, uint64(n)+2))}
				clients.Go(func() {
					for range 12 {
						c.round()
					}
				})
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
	*bubble
	holder string
	dice   *rand.Rand

	answered time.Time // the last wait
}

func (c *randomClient) pause(most time.Duration) { time.Sleep(c.upTo(most)) }

func (c *randomClient) upTo(most time.Duration) time.Duration {
	return time.Duration(c.dice.Int64N(int64(most)))
}

// round acquires in some way and, if that succeeds, releases.
func (c *randomClient) round() {
	c.pause(300 * time.Millisecond)
	a := c.ask(c.holder, []time.Duration{0, 200 * time.Millisecond, 2 * time.Second}[c.dice.IntN(3)])
	a.Lease = time.Hour
	began := time.Now()
	r := c.do(a)
	took := time.Since(began)
	if w, ok := r.Value.(*semaphore.Waiting); ok {
		r = c.await(w)
		took = c.answered.Sub(began)
	}
	limit := a.Wait + time.Second
	if a.Wait == 0 {
		limit = 5*time.Second + 2*lookEvery
	}
	if took > limit {
		c.Errorf("%s: a WAIT of %v was answered %v, %v after %v", c.holder, a.Wait, r.Value, r.Err, took)
	}
	if _, ok := r.Value.(*semaphore.Grant); !ok {
		return
	}
	c.pause(500 * time.Millisecond)
	c.giveBack()
}

// giveBack releases what the client was granted. Once that is uncertain, it may have been done.
func (c *randomClient) giveBack() {
	for uncertain := false; ; uncertain = true {
		r := c.do(semaphore.Release{Key: testKey, Holder: c.holder})
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
	case <-time.After(c.upTo(3 * time.Second)):
	}
	switch c.dice.IntN(3) {
	case 0:
		w.Leave()
	case 1:
		w.Quit()
	case 2:
		var cancelled sync.WaitGroup
		cancelled.Go(func() { c.do(semaphore.Cancel{Key: testKey, Holder: c.holder}) })
		defer cancelled.Wait()
	}
	r := <-w.Done
	c.answered = time.Now()
	return r
}
