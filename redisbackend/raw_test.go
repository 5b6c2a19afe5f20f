package redisbackend

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// byHand is a client that works on the keys of the semaphore k without us.
type byHand struct {
	testing.TB
	*redis.Client
}

const releaseByHand = "if redis.call('ZREM',KEYS[2],ARGV[1])==1 then redis.call('RPUSH',KEYS[1],'p') return 1 end return 0"

func newByHand(t testing.TB, r *redisd.Server) *byHand {
	c := redis.NewClient(&redis.Options{Addr: r.Addr, ReadTimeout: patience, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return &byHand{t, c}
}

// acquire takes a permit as the recipe says, within a second.
func (c *byHand) acquire(holder string) bool {
	c.Helper()
	err := c.BRPop(c.TB.Context(), time.Second, "sem:k:permits").Err()
	if errors.Is(err, redis.Nil) {
		return false
	}
	if err == nil {
		end := time.Now().Add(time.Minute).UnixMilli()
		err = c.ZAdd(c.TB.Context(), "sem:k:holders", redis.Z{Score: float64(end), Member: holder}).Err()
	}
	if err != nil {
		c.Error(err)
	}
	return err == nil
}

func (c *byHand) release(holder string) {
	c.Helper()
	got, err := c.Eval(c.TB.Context(), releaseByHand, []string{"sem:k:permits", "sem:k:holders"}, holder).Int()
	if got != 1 || err != nil {
		c.Errorf("release of %s by hand: got %v, %v, want 1", holder, got, err)
	}
}

func TestNeitherRawClientsNorWaitersStarve(t *testing.T) {
	for _, capacity := range []int64{1, 3} {
		t.Run(fmt.Sprint("capacity ", capacity), func(t *testing.T) {
			r := redisd.Run(t)
			e := openEngine(t, r)
			create(t, e, "k", capacity)
			var raw, ours atomic.Int64
			held := &room{TB: t, capacity: capacity}
			var clients sync.WaitGroup
			stop := time.Now().Add(3 * time.Second)
			holds := func(count *atomic.Int64) {
				held.enter()
				count.Add(1)
				held.leave()
			}
			for n := range 3 {
				c := newByHand(t, r)
				clients.Go(func() {
					for i := 0; time.Now().Before(stop); i++ {
						if holder := fmt.Sprint("raw", n, ".", i); c.acquire(holder) {
							holds(&raw)
							c.release(holder)
						}
					}
				})
				clients.Go(func() {
					for i := 0; time.Now().Before(stop); i++ {
						holder := fmt.Sprint("ours", n, ".", i)
						got := acquire(e, semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Wait: time.Minute})
						if got.Value == nil {
							t.Errorf("%s: got %v, want a grant", holder, got.Err)
							return
						}
						holds(&ours)
						one(e, semaphore.Release{Key: "k", Holder: holder})
					}
				})
			}
			clients.Wait()
			t.Logf("in 3 s: %d grants by hand, %d grants of ours", raw.Load(), ours.Load())
			if share := float64(raw.Load()) / float64(raw.Load()+ours.Load()); share < 0.03 || share > 0.97 {
				t.Errorf("share by hand: got %.3f, want neither side to starve", share)
			}
			if got := ledger(t, r); got != [2]any{capacity, int64(0)} {
				t.Errorf("free, held at the end: got %v, want %d, 0", got, capacity)
			}
		})
	}
}

func TestAReleaseByHandServesTheLineWithinThePoll(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r)
	create(t, e, "k", 1)
	c := newByHand(t, r)
	if !c.acquire("raw") {
		t.Fatal("got no permit by hand, want one")
	}
	w := one(e, semaphore.Acquire{Key: "k", Holder: "ours", Permits: 1, Wait: time.Minute}).Value.(*semaphore.Waiting)
	c.release("raw")
	began := time.Now()
	if got := <-w.Done; got.Value == nil {
		t.Fatalf("got %v, want a grant", got.Err)
	}
	t.Logf("granted %v after the release by hand", time.Since(began))
}
