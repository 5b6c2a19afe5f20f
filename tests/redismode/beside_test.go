package redismode

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/redisd"
)

const (
	// besideTime is how long both sides are at it, and longer as long as one has not got besideLeast.
	besideTime  = 3 * time.Second
	besideLeast = 20
)

// rush is two clients by hand and four of two servers after the same permits.
type rush struct {
	*testing.T
	held         *room
	task         time.Duration // how long each holds one
	byHand, ours side
	began        time.Time
}

// side is what those on one side got.
type side struct {
	grants  atomic.Int64
	longest atomic.Int64 // wait for one, in nanoseconds
}

func (s *side) got(waited time.Duration) {
	s.grants.Add(1)
	for longest := s.longest.Load(); int64(waited) > longest && !s.longest.CompareAndSwap(longest, int64(waited)); {
		longest = s.longest.Load()
	}
}

// goesOn reports whether the rush goes on.
func (r *rush) goesOn() bool {
	lasted := time.Since(r.began)
	enough := r.byHand.grants.Load() >= besideLeast && r.ours.grants.Load() >= besideLeast
	return lasted < besideTime || !enough && lasted < patience
}

// loop takes permits and gives them back.
func (r *rush) loop(name string, s *side, acquire func(holder string) (bool, error), release func(holder string) error) {
	for n := 0; r.goesOn(); n++ {
		holder := fmt.Sprint(name, n)
		began := time.Now()
		got, err := acquire(holder)
		if err == nil && got {
			r.held.enter()
			s.got(time.Since(began))
			if r.task > 0 {
				<-time.After(r.task)
			}
			r.held.leave()
			err = release(holder)
		}
		if err != nil {
			r.Error(err)
			return
		}
	}
}

// TestNeitherClientsByHandNorWaitersStarve has clients loop BRPOP on the permits that ours wait for.
func TestNeitherClientsByHandNorWaitersStarve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		capacity int64
		task     time.Duration
	}{{1, 0}, {1, time.Millisecond}, {3, time.Millisecond}} {
		t.Run(fmt.Sprintf("capacity %d, tasks of %v", c.capacity, c.task), func(t *testing.T) {
			t.Parallel()
			contend(t, c.capacity, c.task)
		})
	}
}

func contend(t *testing.T, capacity int64, task time.Duration) {
	redis := redisd.Run(t)
	nodes := []*node.Node{serve(t, redis), serve(t, redis)}
	dial(t, nodes[0].Addr).want("OK", "SEM.CREATE", "k", capacity)
	r := &rush{T: t, held: &room{T: t, capacity: capacity}, task: task, began: time.Now()}
	var all sync.WaitGroup
	for n := range 2 {
		pod := newByHand(t, redis)
		all.Go(func() {
			r.loop(fmt.Sprint("pod", n, "."), &r.byHand, func(holder string) (bool, error) {
				return pod.acquire(holder, time.Second, time.Minute)
			}, pod.releaseOnce)
		})
	}
	for n := range 4 {
		c := dial(t, nodes[n%2].Addr).Conn
		all.Go(func() {
			r.loop(fmt.Sprint("ours", n, "."), &r.ours, func(holder string) (bool, error) {
				_, err := acquire(c, holder)
				return true, err
			}, func(holder string) error { return release(c, holder) })
		})
	}
	all.Wait()
	byHand, ours := r.byHand.grants.Load(), r.ours.grants.Load()
	t.Logf("in %v: %d grants (%.0f %%) to two clients by hand, who waited for up to %v; %d to four of two servers, who waited for up to %v",
		time.Since(r.began), byHand, 100*float64(byHand)/float64(byHand+ours), time.Duration(r.byHand.longest.Load()),
		ours, time.Duration(r.ours.longest.Load()))
	if byHand < besideLeast || ours < besideLeast {
		t.Error("one side has starved")
	}
	balances(t, redis, capacity, 0)
}

// TestAPermitPushedByHandServesAWaiter needs no traffic of ours.
func TestAPermitPushedByHandServesAWaiter(t *testing.T) {
	t.Parallel()
	r := redisd.Run(t)
	n := serve(t, r)
	look := dial(t, n.Addr)
	look.want("OK", "SEM.CREATE", "k", 1)
	var best time.Duration
	for round := range 3 {
		pod, holder := newByHand(t, r), fmt.Sprint("ours-", round)
		if got, err := pod.acquire("pod", patience, time.Minute); !got || err != nil {
			t.Fatalf("by hand: got %v, %v, want a permit", got, err)
		}
		c := dial(t, n.Addr)
		c.waits(look, "k", holder, int(patience.Milliseconds()))
		if err := pod.releaseOnce("pod"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		c.granted()
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
		if err := release(c.Conn, holder); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("served %v after the push by hand, at best of three", best)
	if best > time.Second {
		t.Errorf("served %v after the push by hand, want it within the poll of half a second", best)
	}
}
