package redismode

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/redisd"
)

const (
	severalCapacity = 3
	severalClients  = 24
	severalRounds   = 30
)

// worker is a client that moves on to the next server when its own is gone.
type worker struct {
	*resp.Conn
	name  string
	addrs []string
	at    int // which of them

	longest time.Duration // that it waited for a permit
	moved   int           // how often it had to go to another server
}

// do carries out a request, at another server if this one is gone, and reports whether it was sent twice.
func (w *worker) do(args ...any) (reply any, again bool, err error) {
	for range 2 * len(w.addrs) {
		if w.Conn == nil {
			if w.Conn, err = resp.Dial(w.addrs[w.at%len(w.addrs)]); err != nil {
				w.at++
				continue
			}
		}
		if reply, err = w.Conn.Do(args...); err == nil && !isError(reply, "SHUTDOWN") {
			return reply, again, nil
		}
		_ = w.Conn.Close() // it is of no use any more
		w.Conn, again = nil, true
		w.at++
		w.moved++
	}
	return nil, again, fmt.Errorf("no server answers: %v, %w", reply, err)
}

// work takes a permit and gives it back, severalRounds times. Each release goes to another server.
func (w *worker) work(held *room) error {
	for n := range severalRounds {
		holder := fmt.Sprint(w.name, n)
		began := time.Now()
		reply, _, err := w.do("SEM.ACQUIRE", "k", "HOLDER", holder, "WAIT", patience.Milliseconds(), "LEASE", longLease)
		if err != nil {
			return err
		}
		if _, err := asGrant(reply); err != nil {
			return fmt.Errorf("%s: %w", holder, err)
		}
		w.longest = max(w.longest, time.Since(began))
		held.enter()
		<-time.After(time.Millisecond) // the task
		held.leave()
		if err := w.giveBack(holder); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) giveBack(holder string) error {
	if w.Conn != nil {
		_ = w.Conn.Close() // nothing is left to be read
		w.Conn = nil
	}
	w.at++
	got, again, err := w.do("SEM.RELEASE", "k", holder)
	if err != nil || got != int64(1) && (!again || got != int64(0)) {
		return fmt.Errorf("release of %s: got %v, %v, want 1", holder, got, err)
	}
	return nil
}

// crowd has all workers at work, and calls meanwhile when half of the permits have been granted.
func crowd(t *testing.T, nodes []*node.Node, meanwhile func()) {
	t.Helper()
	held := &room{T: t, capacity: severalCapacity}
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	began := time.Now()
	workers := make([]*worker, severalClients)
	var all sync.WaitGroup
	for i := range workers {
		w := &worker{name: fmt.Sprint("w", i, "."), addrs: addrs, at: i}
		workers[i] = w
		all.Go(func() {
			if err := w.work(held); err != nil {
				t.Error(err)
			}
		})
	}
	meanwhile()
	all.Wait()
	var longest time.Duration
	moved := 0
	for _, w := range workers {
		longest, moved = max(longest, w.longest), moved+w.moved
	}
	t.Logf("%d servers: %d grants in %v, at most %d at once; nobody waited for more than %v; %d requests were sent again",
		len(nodes), severalClients*severalRounds, time.Since(began), held.most.Load(), longest, moved)
}

func TestTwoServersShareASemaphoreUnderLoad(t *testing.T) {
	t.Parallel()
	r := redisd.Run(t)
	nodes := []*node.Node{serve(t, r), serve(t, r)}
	look := dial(t, nodes[0].Addr)
	look.want("OK", "SEM.CREATE", "k", severalCapacity)
	crowd(t, nodes, func() {})
	balances(t, r, severalCapacity, 0)
}

func TestThreeServersOfWhichOneIsKilledShareASemaphoreUnderLoad(t *testing.T) {
	t.Parallel()
	r := redisd.Run(t)
	// The pass puts back what was reserved for the one that dies.
	nodes := []*node.Node{serve(t, r, "--reconcile-every", "500ms"), serve(t, r, "--reconcile-every", "500ms")}
	third, err := node.Start(binary, "127.0.0.1:0", "", "--redis", "redis://"+r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(third.Kill)
	look := dial(t, nodes[0].Addr)
	look.want("OK", "SEM.CREATE", "k", severalCapacity)
	crowd(t, append(nodes, third), func() {
		trial.Await(t, func() error {
			if i := look.info("k"); i["releases"] < severalClients*severalRounds/2 {
				return fmt.Errorf("releases: got %d, want half of them", i["releases"])
			}
			return nil
		})
		third.Kill()
	})
	sound(t, third)
	for _, n := range nodes {
		trial.Await(t, func() error {
			if i := dial(t, n.Addr).info("k"); i["in_use"] != 0 || i["available"] != severalCapacity || i["waiters"] != 0 {
				return fmt.Errorf("the books: got %v, want everything free", i)
			}
			return nil
		})
	}
	balances(t, r, severalCapacity, 0)
}

// TestArrivalCountsAcrossServers lets waiters join at three servers in turn. Tokens tell the order of grants.
func TestArrivalCountsAcrossServers(t *testing.T) {
	t.Parallel()
	const (
		waiters = 24
		apart   = 20 * time.Millisecond
		surely  = 200 * time.Millisecond // what servers know of Redis's clock is better than this
	)
	r := redisd.Run(t)
	nodes := []*node.Node{serve(t, r), serve(t, r), serve(t, r)}
	var looks []*client
	for _, n := range nodes {
		looks = append(looks, dial(t, n.Addr))
	}
	looks[0].want("OK", "SEM.CREATE", "k", 1)
	looks[0].acquire("k", "HOLDER", "first", "LEASE", longLease)
	arrived, tokens := make([]time.Time, waiters), make([]int64, waiters)
	var all sync.WaitGroup
	for i := range waiters {
		c := dial(t, nodes[i%3].Addr)
		holder := fmt.Sprint("w", i)
		c.waits(looks[i%3], "k", holder, int(patience.Milliseconds()))
		arrived[i] = time.Now()
		all.Go(func() {
			g, err := received(c.Conn)
			if err != nil {
				t.Error(err)
				return
			}
			tokens[i] = g.token
			if err := release(c.Conn, holder); err != nil {
				t.Error(err)
			}
		})
		<-time.After(apart) // the next one arrives that much later
	}
	looks[2].want(1, "SEM.RELEASE", "k", "first")
	all.Wait()
	overtaken := 0
	for i := range waiters {
		for j := range i {
			if tokens[j] < tokens[i] {
				continue
			}
			overtaken++
			if by := arrived[i].Sub(arrived[j]); by > surely {
				t.Errorf("waiter %d, which came %v after %d, was granted before it", i, by, j)
			}
		}
	}
	t.Logf("%d waiters at three servers, %v apart: %d were overtaken", waiters, apart, overtaken)
	balances(t, r, 1, 0)
}
