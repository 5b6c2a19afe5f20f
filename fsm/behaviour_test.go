package fsm

import (
	"errors"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func acquire(holder string, permits int64, lease, wait time.Duration) semaphore.Acquire {
	return semaphore.Acquire{Key: "k", Holder: holder, Permits: permits, Lease: lease, Wait: wait}
}

func release(holder string) semaphore.Release { return semaphore.Release{Key: "k", Holder: holder} }

func wantNumber(t *testing.T, replies []semaphore.Reply, want semaphore.Number) {
	t.Helper()
	if len(replies) != 1 || replies[0].Err != nil || replies[0].Value != want {
		t.Fatalf("got %+v, want %d", replies, want)
	}
}

func wantNil(t *testing.T, replies []semaphore.Reply) {
	t.Helper()
	if len(replies) != 1 || replies[0] != (semaphore.Reply{}) {
		t.Fatalf("got %+v, want nil", replies)
	}
}

func wantCode(t *testing.T, replies []semaphore.Reply, want semaphore.Code) {
	t.Helper()
	if len(replies) != 1 || !errors.Is(replies[0].Err, &semaphore.Error{Code: want}) {
		t.Fatalf("got %+v, want code %s", replies, want)
	}
}

func wantInLine(t *testing.T, replies []semaphore.Reply) {
	t.Helper()
	if len(replies) != 1 || replies[0].Value != (InLine{}) {
		t.Fatalf("got %+v, want a place in line", replies)
	}
}

// grantees returns the holders granted by events, and fails on any other event.
func (n *node) grantees() (holders []string) {
	n.t.Helper()
	for _, e := range n.events {
		g, ok := e.Reply.Value.(*semaphore.Grant)
		if !ok {
			n.t.Fatalf("got event %+v, want only grants", e)
		}
		holders = append(holders, g.Holder)
	}
	return holders
}

func TestStaleReleaseDoesNotOverIssue(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 3})
	n.grant(n.at(0, acquire("a", 1, ms(200), 0)))
	wantNumber(t, n.at(300, release("a")), 0)
	if info := n.info(300, "k"); info.Available != 3 || info.InUse != 0 {
		t.Errorf("got %+v, want 3 available", info.Usage)
	}
	for _, holder := range []string{"b", "c", "d"} {
		n.grant(n.at(300, acquire(holder, 1, ms(200), 0)))
	}
	wantNil(t, n.at(300, acquire("e", 1, ms(200), 0)))
}

func TestSecondReleaseAnswersZero(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	wantNumber(t, n.at(1, release("a")), 1)
	wantNumber(t, n.at(1, release("a")), 0)
}

func TestOneReleaseWakesOneOfManyWaiters(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	for i := range 500 {
		wantInLine(t, n.at(1, acquire(string(rune('A'+i/26))+string(rune('a'+i%26)), 1, 0, time.Minute)))
	}
	n.at(2, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "Aa" {
		t.Errorf("got grants to %v, want Aa alone", got)
	}
}

func TestLeaseEndsByItselfAndServesTheLine(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	first := n.grant(n.at(0, acquire("a", 1, ms(50), 0)))
	wantInLine(t, n.at(10, acquire("b", 1, ms(50), ms(500))))
	if next, ok := n.s.Next(); !ok || next != 50_000 {
		t.Errorf("got next %v %v, want 50000", next, ok)
	}
	n.at(49)
	if len(n.events) != 0 {
		t.Fatalf("got %+v before the lease ended", n.events)
	}
	n.at(50)
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Fatalf("got grants to %v, want b", got)
	}
	if g := n.events[0].Reply.Value.(*semaphore.Grant); g.Token <= first.Token || g.Lease != ms(50) || g.Slot() != 0 {
		t.Errorf("got %+v, want a larger token, slot 0 and the whole lease", g)
	}
}

func TestWaiterWhoGaveUpDoesNotEatTheNextPermit(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	n.at(0, acquire("b", 1, 0, ms(50)))
	n.at(0, acquire("c", 1, 0, ms(5000)))
	n.at(50)
	if len(n.events) != 1 || n.events[0].Reply != (semaphore.Reply{}) {
		t.Fatalf("got %+v, want nil for b", n.events)
	}
	n.at(60, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "c" {
		t.Errorf("got grants to %v, want c", got)
	}
}

func TestLeaseEndComesBeforeWaitEndAtATie(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, ms(50), 0)))
	n.at(0, acquire("b", 1, 0, ms(50)))
	n.at(70)
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want b", got)
	}
}

func TestSmallRequestDoesNotOvertakeLargeOne(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 3})
	for _, holder := range []string{"x", "y", "z"} {
		n.grant(n.at(0, acquire(holder, 1, 0, 0)))
	}
	n.at(0, acquire("large", 3, 0, time.Minute))
	n.at(0, acquire("small", 1, 0, time.Minute))
	n.at(1, release("x"))
	n.at(1, release("y"))
	if len(n.events) != 0 {
		t.Fatalf("got %+v, want nobody granted yet", n.events)
	}
	wantNil(t, n.at(1, acquire("now", 1, 0, 0)))
	n.at(1, release("z"))
	if got := n.grantees(); len(got) != 1 || got[0] != "large" {
		t.Errorf("got grants to %v, want large", got)
	}
}

func TestRepeatWhileHoldingReturnsTheSameGrant(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	first := n.grant(n.at(0, acquire("a", 1, ms(1000), 0)))
	again := n.grant(n.at(400, acquire("a", 1, ms(9000), ms(100))))
	if !again.Replayed || again.Token != first.Token || again.Lease != ms(600) {
		t.Errorf("got %+v, want the replayed grant %d with 600 ms left", again, first.Token)
	}
	wantCode(t, n.at(400, acquire("a", 2, 0, 0)), semaphore.CodeConflict)
	if info := n.info(400, "k"); info.InUse != 1 {
		t.Errorf("got %d in use, want 1", info.InUse)
	}
}

func TestFreshFencesTheOldProcessOff(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 2, Settings: semaphore.Settings{MaxHold: semaphore.Set(ms(1000))}})
	first := n.grant(n.at(0, acquire("a", 2, ms(800), 0)))
	q := acquire("a", 2, ms(800), 0)
	q.Fresh = true
	fresh := n.grant(n.at(500, q))
	if fresh.Replayed || fresh.Token <= first.Token || fresh.Lease != ms(800) || fresh.Slots[0] != first.Slots[0] {
		t.Errorf("got %+v after %+v, want a new token and lease on the same slots", fresh, first)
	}
	wantNumber(t, n.at(500, semaphore.Check{Key: "k", Holder: "a", Token: first.Token}), 0)
	wantNumber(t, n.at(500, semaphore.Renew{Key: "k", Holder: "a", Token: first.Token}), 0)
	wantNumber(t, n.at(500, semaphore.Release{Key: "k", Holder: "a", Token: fresh.Token}), 1)
}

func TestRenewSetsTheLeaseFromNow(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, ms(2000), 0)))
	wantNumber(t, n.at(500, semaphore.Renew{Key: "k", Holder: "a", Lease: ms(1000)}), 1000)
	wantNumber(t, n.at(900, semaphore.Renew{Key: "k", Holder: "a"}), 1000)
	wantNumber(t, n.at(1900, semaphore.Renew{Key: "k", Holder: "a"}), 0)
}

func TestMaxHoldCutsEveryLease(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1, Settings: semaphore.Settings{MaxHold: semaphore.Set(ms(1000))}})
	if g := n.grant(n.at(0, acquire("a", 1, ms(5000), 0))); g.Lease != ms(1000) {
		t.Errorf("got lease %v, want 1s", g.Lease)
	}
	wantNumber(t, n.at(700, semaphore.Renew{Key: "k", Holder: "a"}), 300)
	wantNumber(t, n.at(1000, semaphore.Renew{Key: "k", Holder: "a"}), 0)
	wantCode(t, n.at(1000, acquire("a", 1, semaphore.Persist, 0)), semaphore.CodeInvalid)
}

func TestShrinkingTakesNothingFromAnybody(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 5})
	for _, holder := range []string{"a", "b", "c", "d", "e"} {
		n.grant(n.at(0, acquire(holder, 1, 0, 0)))
	}
	got := n.one(n.at(1, semaphore.Resize{Key: "k", Capacity: 2}))
	if want := (semaphore.Usage{Capacity: 2, InUse: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if info := n.info(1, "k"); info.Excess != 3 || info.Rows != 5 {
		t.Errorf("got excess %d and %d rows, want 3 and 5", info.Excess, info.Rows)
	}
	for _, holder := range []string{"a", "b", "c"} {
		n.at(2, release(holder))
	}
	wantNil(t, n.at(2, acquire("f", 1, 0, 0)))
	wantCode(t, n.at(2, acquire("g", 3, 0, 0)), semaphore.CodeTooMany)
	n.at(3, release("d"))
	if g := n.grant(n.at(3, acquire("f", 1, 0, 0))); g.Slot() != 0 {
		t.Errorf("got slot %d, want 0", g.Slot())
	}
}

func TestGrowingServesTheOldestInOrder(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 0})
	for _, holder := range []string{"a", "b", "c"} {
		wantInLine(t, n.at(0, acquire(holder, 1, 0, time.Minute)))
	}
	n.at(1, semaphore.Resize{Key: "k", Capacity: 2})
	if got := n.grantees(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("got grants to %v, want a and b", got)
	}
}

func TestShrinkingAnswersWaitersThatCannotFitAnyMore(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 5})
	n.grant(n.at(0, acquire("a", 5, 0, 0)))
	n.at(0, acquire("small", 2, 0, time.Minute))
	n.at(0, acquire("large", 4, 0, time.Minute))
	n.at(1, semaphore.Resize{Key: "k", Capacity: 0})
	if len(n.events) != 0 {
		t.Fatalf("got %+v, want nobody refused by a pause", n.events)
	}
	n.at(2, semaphore.Resize{Key: "k", Capacity: 3})
	if len(n.events) != 1 || !errors.Is(n.events[0].Reply.Err, &semaphore.Error{Code: semaphore.CodeTooMany}) {
		t.Errorf("got %+v, want TOOMANY for one", n.events)
	}
	if info := n.info(2, "k"); info.Waiters != 1 {
		t.Errorf("got %d waiters, want 1", info.Waiters)
	}
}

func TestQuarantineKeepsSlotOfExpiredPermitOut(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 2, Settings: semaphore.Settings{Quarantine: semaphore.Set(ms(100))}})
	n.grant(n.at(0, acquire("a", 1, ms(50), 0)))
	if g := n.grant(n.at(70, acquire("b", 1, ms(500), 0))); g.Slot() != 1 {
		t.Errorf("got slot %d, want 1", g.Slot())
	}
	wantNil(t, n.at(149, acquire("c", 1, ms(500), 0)))
	info := n.info(149, "k")
	if info.Quarantined != 1 || info.Available != 0 || info.InUse != 1 || info.Counters.Expirations != 1 {
		t.Errorf("got %+v, want one in quarantine, none available", info)
	}
	if g := n.grant(n.at(150, acquire("c", 1, ms(500), 0))); g.Slot() != 0 {
		t.Errorf("got slot %d, want 0", g.Slot())
	}
}

func TestTakeOverSupersedesTheOlderRequest(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	n.at(0, acquire("b", 1, 0, ms(100)))
	n.at(0, acquire("c", 1, 0, ms(5000)))
	old := n.ticket - 2
	wantCode(t, n.at(50, acquire("b", 2, 0, ms(100))), semaphore.CodeConflict)
	wantNil(t, n.at(50, acquire("b", 1, 0, 0)))
	wantInLine(t, n.at(50, acquire("b", 1, ms(700), ms(100))))
	if len(n.events) != 1 || n.events[0].Ticket.Number != old || !errors.Is(n.events[0].Reply.Err, semaphore.ErrSuperseded) {
		t.Fatalf("got %+v, want SUPERSEDED for ticket %d", n.events, old)
	}
	n.at(140, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "b" || n.events[0].Reply.Value.(*semaphore.Grant).Lease != ms(700) {
		t.Errorf("got %+v, want b granted in its old place with the newer lease", n.events)
	}
}

func TestDeleteWithForceSendsWaitersAway(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	n.at(0, acquire("b", 1, 0, ms(100)))
	wantCode(t, n.at(1, semaphore.Delete{Key: "k"}), semaphore.CodeInUse)
	wantNumber(t, n.at(1, semaphore.Delete{Key: "k", Force: true}), 1)
	if len(n.events) != 1 || !errors.Is(n.events[0].Reply.Err, semaphore.ErrNoSemaphore) {
		t.Errorf("got %+v, want NOSEM for b", n.events)
	}
	wantNumber(t, n.at(2, semaphore.Delete{Key: "k"}), 0)
	wantNumber(t, n.at(2, release("a")), 0)
	wantCode(t, n.at(2, acquire("a", 1, 0, 0)), semaphore.CodeNoSem)
}

func TestTokensGrowAfterDeletion(t *testing.T) {
	n := newNode(t)
	n.wall = 5_000
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	first := n.grant(n.at(0, acquire("a", 1, 0, 0)))
	n.wall = 100
	n.at(1, semaphore.Delete{Key: "k", Force: true}, semaphore.Create{Key: "k", Capacity: 1, MinToken: 9_000})
	second := n.grant(n.at(1, acquire("a", 1, 0, 0)))
	if first.Token != 5_000 || second.Token != 9_001 {
		t.Errorf("got tokens %d and %d, want 5000 and 9001", first.Token, second.Token)
	}
}

func TestBrokenWallClockIsIgnored(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 2})
	n.wall = 1<<52 + 1
	if g := n.grant(n.at(0, acquire("a", 1, 0, 0))); g.Token != 1 {
		t.Errorf("got token %d, want 1", g.Token)
	}
}
