package redismode

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/redisd"
)

// TestRestartsUnderLoadLoseNoPermit kills a durable Redis again and again. Whoever is answered by an error
// repeats the request, as a client should.
func TestRestartsUnderLoadLoseNoPermit(t *testing.T) {
	t.Parallel()
	const restarts, capacity, clients = 3, 3, 12
	r := redisd.Run(t, redisd.Durable()...)
	nodes := []*node.Node{serve(t, r, "--hold", hold), serve(t, r, "--hold", hold)}
	dial(t, nodes[0].Addr).want("OK", "SEM.CREATE", "k", capacity)
	held := &room{T: t, capacity: capacity}
	var over atomic.Bool
	var grants atomic.Int64
	refusals := make([]map[string]int, clients)
	var all sync.WaitGroup
	for n := range clients {
		c := &stubborn{Conn: dial(t, nodes[n%2].Addr).Conn, refusals: map[string]int{}}
		refusals[n] = c.refusals
		all.Go(func() {
			for i := 0; !over.Load(); i++ {
				if err := c.task(fmt.Sprint("w", n, ".", i), held); err != nil {
					t.Error(err)
					return
				}
				grants.Add(1)
			}
		})
	}
	for n := range restarts {
		r.Kill()
		if n > 0 {
			<-time.After(500 * time.Millisecond) // longer than requests are held
		}
		if err := r.Start(); err != nil {
			t.Error(err)
			break
		}
		before := grants.Load()
		for end := time.Now().Add(patience); grants.Load() < before+100 && !t.Failed() && time.Now().Before(end); {
			<-time.After(pollEvery)
		}
	}
	over.Store(true)
	all.Wait()
	codes := map[string]int{}
	for _, counts := range refusals {
		for code, n := range counts {
			codes[code] += n
		}
	}
	t.Logf("%d grants over %d restarts of Redis, at most %d at once; answers that had to be repeated: %v", grants.Load(), restarts, held.most.Load(), codes)
	for code := range codes {
		if code != "CLUSTERDOWN" && code != "UNCERTAIN" {
			t.Errorf("a restart of Redis: got %s, want CLUSTERDOWN or UNCERTAIN", code)
		}
	}
	if grants.Load() < restarts*100 {
		t.Errorf("grants: got %d, want it to go on after each restart", grants.Load())
	}
	balances(t, r, capacity, 0)
}

// stubborn is a client that repeats what was answered by an error, and counts these.
type stubborn struct {
	*resp.Conn
	refusals map[string]int
}

// do returns whether the request may have taken effect before.
func (c *stubborn) do(args ...any) (reply any, again bool, err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(pollEvery) {
		reply, err = c.Do(args...)
		refusal, refused := reply.(resp.Error)
		if err != nil || !refused {
			return reply, again, err
		}
		c.refusals[refusal.Code()]++
		again = again || refusal.Code() != "CLUSTERDOWN"
	}
	return nil, again, fmt.Errorf("%v: got %v for %v", args, reply, patience)
}

// task takes a permit and gives it back.
func (c *stubborn) task(holder string, held *room) error {
	reply, _, err := c.do("SEM.ACQUIRE", "k", "HOLDER", holder, "WAIT", patience.Milliseconds(), "LEASE", longLease)
	if err == nil {
		_, err = asGrant(reply)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", holder, err)
	}
	held.enter()
	<-time.After(time.Millisecond) // the task
	held.leave()
	reply, again, err := c.do("SEM.RELEASE", "k", holder)
	if err != nil || reply != int64(1) && (!again || reply != int64(0)) {
		return fmt.Errorf("release of %s: got %v, %v, want 1", holder, reply, err)
	}
	return nil
}
