package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/chaos/internal/check"
	"github.com/semserver/semserver/tests/chaos/internal/fleet"
	"github.com/semserver/semserver/tests/chaos/internal/history"
	"github.com/semserver/semserver/tests/chaos/internal/load"
)

const (
	clients = 10
	// slack is what a busy machine may add to answers and to the ends of leases.
	slack = 3 * time.Second
	// searchTime is how long the search for an order may take; it usually takes a part of a second.
	searchTime = 2 * time.Minute
	// patience is how long a test waits for what must happen. It is far beyond what a server needs.
	patience = 40 * time.Second
	// calm is the longest pause between two faults.
	calm = time.Second
	// most lines of an excerpt, and most violations that are told.
	excerptLines, mostTold = 60, 4
)

// round is one cluster under one schedule of faults.
type round struct {
	nodes  int
	seed   uint64
	length time.Duration
	faults []fault
	// longest is how long a fault may last. All last longer than an election takes.
	longest time.Duration
	flags   []string // of the nodes
}

// semaphores are few and small, so that clients get into each other's way.
func semaphores() []load.Semaphore {
	return []load.Semaphore{
		{Key: "door", Capacity: 1, Most: 1},
		{Key: "pair", Capacity: 2, Most: 1},
		{Key: "hall", Capacity: 3, Most: 2, HangUps: true},
	}
}

func setup() check.Setup {
	s := check.Setup{Capacity: map[string]int64{}, Hold: 5 * time.Second, Grace: 5 * time.Second, Slack: slack}
	for _, one := range semaphores() {
		s.Capacity[one.Key] = one.Capacity
	}
	return s
}

// play runs a round and fails the test with whatever its history breaks.
func play(t *testing.T, r round) {
	t.Helper()
	t.Logf("%d nodes, seed %d", r.nodes, r.seed)
	f := open(t, r.nodes, r.flags...)
	play := &performance{
		T: t, round: r, fleet: f, history: history.NewRecorder(), random: rand.New(rand.NewPCG(r.seed, 0)),
	}
	play.create()
	working, finish := context.WithCancel(context.Background())
	defer finish()
	var clients, watchers sync.WaitGroup
	watching, rest := context.WithCancel(context.Background())
	defer rest()
	play.startClients(working, &clients)
	play.startWatchers(watching, &watchers)

	play.perform()

	finish()
	clients.Wait()
	play.drain()
	rest()
	watchers.Wait()
	play.judge()
}

// performance is a round that is being played.
type performance struct {
	*testing.T
	round   round
	fleet   *fleet.Fleet
	history *history.Recorder
	random  *rand.Rand
	callers int
	deck    []fault // those still to come before all come again
}

// caller makes one with an id and randomness of its own.
func (p *performance) caller() *load.Caller {
	p.callers++
	return &load.Caller{
		ID: p.callers, Addrs: p.fleet.Addrs(), Setup: setup(), History: p.history,
		Random: rand.New(rand.NewPCG(p.random.Uint64(), 0)),
	}
}

func (p *performance) create() {
	p.Helper()
	c := dial(p.T, p.fleet.Addr(1))
	for _, s := range semaphores() {
		c.want("OK", "SEM.CREATE", s.Key, s.Capacity)
	}
}

func (p *performance) startClients(ctx context.Context, group *sync.WaitGroup) {
	for range clients {
		c := &load.Client{Caller: p.caller(), Semaphores: semaphores()}
		group.Go(func() { c.Run(ctx) })
	}
}

func (p *performance) startWatchers(ctx context.Context, group *sync.WaitGroup) {
	for i := 1; i <= p.fleet.Size(); i++ {
		w := &load.Watcher{Caller: p.caller(), Node: i, Semaphores: semaphores()}
		group.Go(func() { w.Run(ctx) })
	}
}

// perform does one fault after another, and mends each.
func (p *performance) perform() {
	for p.rest(calm); p.history.Now() < p.round.length; p.rest(calm) {
		f := p.deal()
		began := p.history.Now()
		what, mute := f(p)
		p.fleet.Net.Heal()
		p.history.AddFault(history.Fault{From: began, To: p.history.Now(), What: what, Mute: mute})
		if p.Failed() {
			return
		}
	}
	if _, err := p.fleet.AwaitLeader(0); err != nil {
		p.Error(err)
	}
}

// deal is the next fault: each comes once before one comes again.
func (p *performance) deal() fault {
	if len(p.deck) == 0 {
		p.deck = slices.Clone(p.round.faults)
		p.random.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
	}
	f := p.deck[0]
	p.deck = p.deck[1:]
	return f
}

func (p *performance) rest(atMost time.Duration) { <-time.After(p.upTo(atMost)) }

func (p *performance) upTo(d time.Duration) time.Duration {
	return time.Duration(p.random.Int64N(int64(d)))
}

// drain waits until all leases have ended; then every permit must be there again.
func (p *performance) drain() {
	p.Helper()
	for i := 1; i <= p.fleet.Size(); i++ {
		c := dial(p.T, p.fleet.Addr(i))
		for _, s := range semaphores() {
			trial.Await(p.T, func() error {
				got := c.info(s.Key)
				if got["in_use"] != 0 || got["available"] != s.Capacity || got["waiters"] != 0 || got["orphans"] != 0 {
					return fmt.Errorf("all leases have ended, but at node %d: %v", i, got)
				}
				return nil
			})
		}
	}
}

// judge checks the history.
func (p *performance) judge() {
	p.Helper()
	l := p.history.Log()
	tally := map[string]int{}
	for _, o := range l.Ops {
		tally[fmt.Sprintf("%s %s%s", o.Kind, o.Result.Outcome, o.Result.Code)]++
	}
	p.Logf("%d requests: %v", len(l.Ops), tally)
	for _, f := range l.Faults {
		p.Logf("fault from %v to %v: %s", f.From.Round(time.Millisecond), f.To.Round(time.Millisecond), f.What)
	}
	found := check.Promises(l, setup())
	for i, v := range found {
		if i == mostTold {
			p.Errorf("… and %d violations more", len(found)-mostTold)
			break
		}
		p.Errorf("%v\n%s", v, l.Excerpt(v.Key, v.From-time.Second, v.To+time.Second, excerptLines))
	}
	for _, v := range check.Linearizable(l, setup(), searchTime) {
		switch {
		case v.Undecided:
			p.Errorf("%s: not decided within %v whether %d requests are linearizable", v.Key, searchTime, v.Steps)
		case !v.Linear:
			p.Errorf("%s: not linearizable: %s\n%s", v.Key, v.What, l.Excerpt(v.Key, v.From, v.To, excerptLines))
		}
	}
	if p.Failed() {
		p.keep(l)
	}
}

func (p *performance) keep(l history.Log) {
	name := filepath.Join(p.ArtifactDir(), "history.txt")
	file, err := os.Create(name)
	if err != nil {
		p.Error(err)
		return
	}
	defer file.Close()
	if _, err := l.WriteTo(file); err != nil {
		p.Error(err)
	}
	p.Logf("the whole history: %s (kept with -artifacts)", name)
}
