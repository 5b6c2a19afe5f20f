package redisbackend

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/internal/trial"
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
	for _, c := range []struct{ capacity, permits int64 }{{1, 1}, {3, 1}, {3, 2}} {
		t.Run(fmt.Sprintf("capacity %d, permits %d", c.capacity, c.permits), func(t *testing.T) {
			r := redisd.Run(t)
			e := openEngine(t, r)
			create(t, e, "k", c.capacity)
			raw, ours := contend(t, r, e, c.permits, &room{TB: t, capacity: c.capacity})
			t.Logf("in 3 s: %d grants by hand, %d grants of ours", raw, ours)
			if raw < 10 || ours < 10 {
				t.Error("one side has starved")
			}
			trial.Until(t, "all free", func() bool { return ledger(t, r) == [2]any{c.capacity, int64(0)} })
		})
	}
}

// contend has three clients by hand and three of ours, each for so many permits, acquire and release for
// 3 s, and returns how many grants each side got.
func contend(t *testing.T, r *redisd.Server, e *Engine, permits int64, held *room) (raw, ours int64) {
	var byHand, through atomic.Int64
	var clients sync.WaitGroup
	stop := time.Now().Add(3 * time.Second)
	for n := range 3 {
		c := newByHand(t, r)
		clients.Go(func() {
			for i := 0; time.Now().Before(stop); i++ {
				if holder := fmt.Sprint("raw", n, ".", i); c.acquire(holder) {
					held.enter(1)
					byHand.Add(1)
					held.leave(1)
					c.release(holder)
				}
			}
		})
		clients.Go(func() {
			for i := 0; time.Now().Before(stop); i++ {
				holder := fmt.Sprint("ours", n, ".", i)
				got := acquire(e, semaphore.Acquire{Key: "k", Holder: holder, Permits: permits, Wait: time.Minute})
				if got.Value == nil {
					t.Errorf("%s: got %v, want a grant", holder, got.Err)
					return
				}
				held.enter(permits)
				through.Add(1)
				held.leave(permits)
				one(e, semaphore.Release{Key: "k", Holder: holder})
			}
		})
	}
	clients.Wait()
	return byHand.Load(), through.Load()
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
