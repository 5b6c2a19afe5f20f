package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// crashRounds is how often the node is killed; crashRoundsVariable in the environment overrides it.
	crashRounds         = 15
	crashRoundsVariable = "SEMSERVER_CRASH_ROUNDS"
	// crashSeedVariable in the environment repeats a run.
	crashSeedVariable = "SEMSERVER_CRASH_SEED"
	crashWorkers      = 16
	// roundLoad is the longest that a node works before it is killed.
	roundLoad = 400 * time.Millisecond
)

// pools are the semaphores under load: in one everybody finds a permit, in the other most wait.
func pools() map[string]int64 { return map[string]int64{"wide": 100_000, "narrow": 3} }

// TestNothingAcknowledgedIsLostByKill kills a node at random moments under load. Whatever a client was
// told before must hold afterwards, and what a client was not told may have happened or not.
func TestNothingAcknowledgedIsLostByKill(t *testing.T) {
	for _, store := range []string{"wal", "boltdb"} {
		t.Run(store, func(t *testing.T) { killAgainAndAgain(t, "--log-store", store) })
	}
}

func killAgainAndAgain(t *testing.T, flags ...string) {
	seed := trial.Number(t, crashSeedVariable, rand.Uint64())
	rounds := trial.Number(t, crashRoundsVariable, crashRounds)
	t.Logf("seed %d (%s=%d repeats it)", seed, crashSeedVariable, seed)
	random := rand.New(rand.NewPCG(seed, 0))

	data := t.TempDir()
	n := startOn(t, "127.0.0.1:0", data, flags...)
	c := dial(t, n)
	for key, capacity := range pools() {
		c.want("OK", "SEM.CREATE", key, capacity)
	}
	books := newLedger()
	for round := range rounds {
		load(t, n, books, random, fmt.Sprint("r", round))
		if t.Failed() {
			t.Fatalf("round %d of seed %d\n%s", round, seed, n.Log())
		}
		n = startOn(t, n.Addr, data, flags...)
		c := dial(t, n)
		books.verify(c)
		books.thin(c)
	}
	t.Logf("%d grants and %d releases were acknowledged over %d kills", books.granted, books.released, rounds)
	books.drain(t, dial(t, n))
	stop(t, n)
}

// load runs the workers against a node until it is killed in their midst.
func load(t *testing.T, n *node.Node, books *ledger, random *rand.Rand, round string) {
	t.Helper()
	var workers sync.WaitGroup
	for i := range crashWorkers {
		conn, err := resp.Dial(n.Addr)
		if err != nil {
			t.Fatal(err)
		}
		w := &worker{
			conn: conn, books: books, name: fmt.Sprint(round, "-", i, "-"), waits: i%4 == 0,
			random: rand.New(rand.NewPCG(random.Uint64(), 0)),
		}
		workers.Go(func() {
			if err := w.work(); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Go(func() { snapshots(t, n) })
	<-time.After(time.Duration(random.Int64N(int64(roundLoad))))
	kill(t, n)
	workers.Wait()
}

// snapshots makes the node write snapshots all the time, so that kills hit those too.
func snapshots(t *testing.T, n *node.Node) {
	conn, err := resp.Dial(n.Addr)
	if err != nil {
		return // killed already
	}
	defer conn.Close()
	for {
		reply, err := conn.Do("SEM.NODE", "SNAPSHOT")
		if err != nil {
			return
		}
		if refused, ok := reply.(resp.Error); ok {
			t.Errorf("SEM.NODE SNAPSHOT: %v", refused)
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

// worker is one client. It notes in the ledger what it is about to ask, and what it was told.
type worker struct {
	conn   *resp.Conn
	books  *ledger
	name   string
	waits  bool // works in the pool where most wait
	random *rand.Rand
	next   int
	held   []promise
}

// work goes on until the connection breaks. The error is one that no kill explains.
func (w *worker) work() error {
	defer w.conn.Close()
	for {
		var broken bool
		var err error
		switch {
		case len(w.held) > 0 && w.random.IntN(3) == 0:
			broken, err = w.release()
		case len(w.held) > 0 && w.random.IntN(4) == 0:
			broken, err = w.renew()
		default:
			broken, err = w.acquire()
		}
		if broken || err != nil {
			return err
		}
	}
}

func (w *worker) acquire() (broken bool, err error) {
	p := promise{key: "wide", holder: fmt.Sprint(w.name, w.next), permits: 1 + w.random.Int64N(3)}
	w.next++
	args := []any{"LEASE", longLease.Milliseconds()}
	if w.waits {
		p.key, p.permits = "narrow", 1+w.random.Int64N(2)
		args = append(args, "WAIT", 50+w.random.IntN(200))
	}
	p.leaseSince = time.Now()
	w.books.asked(p)
	reply, broken, err := w.do(append([]any{"SEM.ACQUIRE", p.key, "HOLDER", p.holder, "PERMITS", p.permits}, args...)...)
	if broken || err != nil {
		return broken, err
	}
	if reply == nil {
		w.books.settled(p)
		return false, nil
	}
	g, err := asGrant(reply)
	if err != nil {
		return false, err
	}
	p.token, p.slot = g.token, g.slot
	w.held = append(w.held, p)
	return false, w.books.acquired(p)
}

func (w *worker) release() (broken bool, err error) {
	i := w.random.IntN(len(w.held))
	p := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	w.books.asked(p)
	reply, broken, err := w.do("SEM.RELEASE", p.key, p.holder, "TOKEN", p.token)
	if broken || err != nil {
		return broken, err
	}
	if reply != int64(1) {
		return false, fmt.Errorf("release of %+v: got %v, want 1", p, reply)
	}
	w.books.gaveBack(p)
	return false, nil
}

func (w *worker) renew() (broken bool, err error) {
	p := &w.held[w.random.IntN(len(w.held))]
	since := time.Now()
	reply, broken, err := w.do("SEM.RENEW", p.key, p.holder, "LEASE", longLease.Milliseconds())
	if broken || err != nil {
		return broken, err
	}
	if reply != longLease.Milliseconds() {
		return false, fmt.Errorf("renewal of %+v: got %v, want the whole lease", *p, reply)
	}
	p.leaseSince = since
	return false, w.books.acquired(*p)
}

// do carries out a command. A connection may break, but a server that is there must answer.
func (w *worker) do(args ...any) (reply any, broken bool, err error) {
	if err := w.conn.Send(args...); err != nil {
		return nil, true, nil
	}
	reply, err = w.conn.Receive(patience)
	switch {
	case err != nil && os.IsTimeout(err):
		return nil, false, fmt.Errorf("%v: neither an answer nor an end of the connection within %v", args, patience)
	case err != nil:
		return nil, true, nil
	}
	if refused, ok := reply.(resp.Error); ok {
		return nil, false, fmt.Errorf("%v: %w", args, refused)
	}
	return reply, false, nil
}
