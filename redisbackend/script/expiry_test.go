package script

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// pass waits until Redis's clock is so much later.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	for end := r.clock() + d.Milliseconds(); r.clock() <= end; {
	}
}

func TestAnEndedLeaseIsOver(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	g := r.acquire("k", "h", time.Millisecond)
	r.pass(time.Millisecond)

	equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: "h"}), 0)
	equal(t, "renew", r.number(semaphore.Renew{Key: "k", Holder: "h", Lease: time.Minute}), 0)
	equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "h", Token: g.Token}), 0)
	again := r.acquire("k", "h", time.Minute)
	equal(t, "replayed", again.Replayed, false)
	equal(t, "slot", again.Slot(), 0)
	i := r.info("k")
	equal(t, "expirations", i.Counters.Expirations, 1)
	if i.Counters.HeldTotal <= 0 || i.Counters.HeldTotal > time.Second {
		t.Errorf("held in all: got %v, want some milliseconds", i.Counters.HeldTotal)
	}
}

func TestManyThatHaveExpiredAreProcessedInPortions(t *testing.T) {
	const many = 20_000
	r := newRig(t)
	r.create("k", many)
	for from := 0; from < many/2; from += 500 {
		s := &Step{}
		for i := range 500 {
			a := semaphore.Acquire{Key: "k", Holder: fmt.Sprint("ours-", from+i), Permits: 1, Lease: time.Millisecond}
			s.Ops = append(s.Ops, Op{Request: a})
		}
		r.step("k", s)
	}
	for n := range many / 2 / 1000 {
		r.do("EVAL", "for i = 1, 1000 do redis.call('RPOP', KEYS[1]) redis.call('ZADD', KEYS[2], 1000, ARGV[1] .. i) end", 2, "sem:k:permits", "sem:k:holders", fmt.Sprint("raw-", n, "-"))
	}
	r.pass(time.Millisecond)
	equal(t, "available", r.info("k").Available, many)

	live := r.acquire("k", "live", time.Minute)
	calls := 0
	for d := (&Drift{More: true}); d.More; calls++ {
		before := r.do("LLEN", "sem:k:permits").(int64)
		d = r.tend("k")
		if d.Freed > 600 || d.Freed != r.do("LLEN", "sem:k:permits").(int64)-before {
			t.Fatalf("freed by one call: got %d, want at most some hundreds, and as many as there are more", d.Freed)
		}
	}

	r.books("k", many-1, 1)
	equal(t, "expirations", r.info("k").Counters.Expirations, many)
	if slot := r.acquire("k", "next", time.Minute).Slot(); slot > 1 || slot == live.Slot() {
		t.Errorf("slot: got %d beside %d, want the lowest one", slot, live.Slot())
	}
	if calls < many/1000 {
		t.Errorf("calls: got %d, want portions", calls)
	}
}

func (r *rig) tend(key string) *Drift {
	r.Helper()
	raw, err := r.send(r.lib.Tend(r.stamp(), key))
	if err != nil {
		r.Fatal(err)
	}
	d, err := ReadTend(raw)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

func TestAGrantOfManyPermitsEndsAsAWhole(t *testing.T) {
	r := newRig(t)
	r.create("k", MaxPermits)
	got := r.ask(semaphore.Acquire{Key: "k", Holder: "h", Permits: MaxPermits, Lease: time.Minute})
	g, ok := got.Value.(*semaphore.Grant)
	if !ok {
		t.Fatalf("got %+v, want a grant", got)
	}
	equal(t, "slots", fmt.Sprint(g.Slots), "[{0 999}]")
	equal(t, "holders", r.info("k").Holders, 1)
	r.books("k", 0, MaxPermits)
	r.number(semaphore.Renew{Key: "k", Holder: "h", Lease: time.Millisecond})
	r.pass(time.Millisecond)

	r.tend("k")

	r.books("k", MaxPermits, 0)
	equal(t, "expirations", r.info("k").Counters.Expirations, 1)
}

func TestQuarantineKeepsPermitsAndSlotsOfAnEndedLease(t *testing.T) {
	r := newRig(t)
	r.create("k", 3, semaphore.Settings{Quarantine: semaphore.Set(time.Hour)})
	got := r.ask(semaphore.Acquire{Key: "k", Holder: "h", Permits: 2, Lease: time.Millisecond})
	if _, ok := got.Value.(*semaphore.Grant); !ok {
		t.Fatalf("got %+v, want a grant", got)
	}
	equal(t, "next expiry within", r.info("k").NextExpiry.Value <= time.Millisecond, true)
	r.pass(time.Millisecond)

	equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: "h"}), 0)
	equal(t, "holders", len(r.holders("k")), 0)
	i := r.info("k")
	equal(t, "quarantined", i.Quarantined, 2)
	equal(t, "in use", i.InUse, 0)
	equal(t, "available", i.Available, 1)
	equal(t, "holders", i.Holders, 0)
	equal(t, "expirations", i.Counters.Expirations, 1)
	equal(t, "missing", i.Missing, 0)
	equal(t, "slot of the next grant", r.acquire("k", "h", time.Minute).Slot(), 2)
	equal(t, "one more", r.ask(semaphore.Acquire{Key: "k", Holder: "i", Permits: 1}), Result{})
	r.books("k", 0, 3)
	equal(t, "released into circulation", r.number(semaphore.Release{Key: "k", Holder: "h"}), 1)
	r.books("k", 1, 2)
	equal(t, "delete minds no quarantine", r.care(semaphore.Delete{Key: "k"}).Value.(semaphore.Number), 1)
}

func TestQuarantineEnds(t *testing.T) {
	r := newRig(t)
	r.create("k", 2, semaphore.Settings{Quarantine: semaphore.Set(30 * time.Millisecond)})
	r.ask(semaphore.Acquire{Key: "k", Holder: "h", Permits: 2, Lease: time.Millisecond})
	r.pass(time.Millisecond)
	r.info("k")
	r.pass(32 * time.Millisecond)

	i := r.info("k")

	equal(t, "quarantined", i.Quarantined, 0)
	equal(t, "available", i.Available, 2)
	equal(t, "expirations", i.Counters.Expirations, 1)
	r.books("k", 2, 0)
	equal(t, "slot", r.acquire("k", "x", time.Minute).Slot(), 0)
}

func TestMaxHoldCutsEveryLease(t *testing.T) {
	r := newRig(t)
	r.create("k", 1, semaphore.Settings{MaxHold: semaphore.Set(300 * time.Millisecond)})
	g := r.acquire("k", "h", time.Minute)
	if g.Lease > 300*time.Millisecond {
		t.Errorf("lease: got %v, want at most MAXHOLD", g.Lease)
	}
	last := int64(300)
	for {
		got := r.number(semaphore.Renew{Key: "k", Holder: "h", Lease: time.Minute})
		if got > last || got == 0 {
			equal(t, "renewed to", got, 0)
			break
		}
		last = got
	}
	equal(t, "persist", r.ask(semaphore.Renew{Key: "k", Holder: "h", Lease: semaphore.Persist}).Err.Error(),
		"ERR PERSIST is not possible on this semaphore: its MAXHOLD is 300 ms")
	r.acquire("k", "i", time.Minute)
}

func TestALeaseAboveMaxLeaseIsRefusedAndADefaultIsCut(t *testing.T) {
	r := newRig(t)
	r.create("k", 2, semaphore.Settings{MaxLease: semaphore.Set(time.Second)})

	got := r.ask(semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Lease: 2 * time.Second})
	equal(t, "error", got.Err.Error(), "ERR LEASE 2000 is above this semaphore's MAXLEASE of 1000 ms")
	got = r.ask(semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Lease: semaphore.Persist})
	equal(t, "error", got.Err.Error(), "ERR PERSIST is not possible on this semaphore: its MAXLEASE is 1000 ms")
	equal(t, "lease", r.acquire("k", "h", 0).Lease, time.Second)
}

func TestPersistNeverEnds(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	equal(t, "lease", r.acquire("k", "h", semaphore.Persist).Lease, semaphore.Persist)
	equal(t, "score", fmt.Sprint(r.do("ZSCORE", "sem:k:holders", "h")), "+Inf")
	equal(t, "renewed without LEASE", r.number(semaphore.Renew{Key: "k", Holder: "h"}), -1)
	equal(t, "next expiry", r.info("k").NextExpiry, semaphore.Setting{})
	equal(t, "remaining", r.holders("k")[0].Remaining, semaphore.Persist)
	equal(t, "renewed", r.number(semaphore.Renew{Key: "k", Holder: "h", Lease: time.Minute}), time.Minute.Milliseconds())
	equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: "h"}), 1)
	r.books("k", 1, 0)
}

func TestAnIdleSemaphoreIsRemovedButKeepsItsTokens(t *testing.T) {
	r := newRig(t)
	r.limits.DefaultIdle = 30 * time.Millisecond
	a := semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Lease: time.Minute, Create: true, Capacity: 2}
	g := r.ask(a).Value.(*semaphore.Grant)
	r.pass(40 * time.Millisecond)
	equal(t, "gone while held", r.tend("k").Gone, false)
	r.number(semaphore.Release{Key: "k", Holder: "h"})
	r.pass(31 * time.Millisecond)

	equal(t, "inspect", r.care(semaphore.Inspect{Key: "k"}).Err, error(semaphore.ErrNoSemaphore))

	equal(t, "names", len(r.names(10)), 0)
	r.floor = g.Token + 1_000_000_000_000
	equal(t, "token above the floor", r.ask(a).Value.(*semaphore.Grant).Token, r.floor+1)
	r.floor = 0
	r.care(semaphore.Delete{Key: "k", Force: true})
	got := r.ask(a).Value.(*semaphore.Grant).Token
	equal(t, "token after deletion", got, g.Token+1_000_000_000_002)
}

// names scans the registry.
func (r *rig) names(count int) (names []string) {
	r.Helper()
	for cursor := uint64(0); ; {
		s := semaphore.Scan{Cursor: cursor, Count: count}
		var replies []any
		for _, c := range r.lib.Scan(s) {
			raw, err := r.send(c)
			if err != nil {
				r.Fatal(err)
			}
			replies = append(replies, raw)
		}
		page, err := r.lib.ReadScan(s, replies)
		if err != nil {
			r.Fatal(err)
		}
		if len(page.Keys) > count {
			r.Fatalf("page: got %d names, want at most %d", len(page.Keys), count)
		}
		names = append(names, page.Keys...)
		if cursor = page.Next; cursor == 0 {
			return names
		}
	}
}

func TestASemaphoreIsNotIdleWhileSomebodyWaits(t *testing.T) {
	r := newRig(t)
	r.create("k", 0, semaphore.Settings{Idle: semaphore.Set(20 * time.Millisecond)})
	r.beside().waits("k", 100, 1)
	r.pass(25 * time.Millisecond)
	equal(t, "gone while a server says that somebody waits", r.tend("k").Gone, false)

	r.do("HDEL", "sem:k:meta", "line")
	r.pass(21 * time.Millisecond)

	equal(t, "gone", r.tend("k").Gone, true)
}
