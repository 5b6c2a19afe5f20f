package fsm

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// orphaned returns a node where "a" holds the only permit until 100 ms and "b", who came through the
// lost node 2, waits as an orphan with a grace until 50 ms.
func orphaned(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, ms(100), 0)))
	n.from = 2
	wantInLine(t, n.at(0, acquire("b", 1, ms(500), time.Minute)))
	n.from = 1
	if got := n.s.Waiting(); !slices.Equal(got, []uint64{2}) {
		t.Fatalf("got waiting nodes %v, want 2", got)
	}
	n.lose(0, 2, ms(50))
	if got := n.s.Waiting(); len(got) != 0 {
		t.Fatalf("got waiting nodes %v, want none", got)
	}
	if info := n.info(0, "k"); info.Waiters != 1 || info.Orphans != 1 {
		t.Fatalf("got %d waiters and %d orphans, want 1 and 1", info.Waiters, info.Orphans)
	}
	return n
}

func TestOrphanKeepsItsPlaceForTheGrace(t *testing.T) {
	n := orphaned(t)
	n.at(10, acquire("c", 1, 0, time.Minute))
	n.at(49)
	if info := n.info(49, "k"); info.Waiters != 2 {
		t.Fatalf("got %d waiters, want 2", info.Waiters)
	}
	n.at(50)
	if info := n.info(50, "k"); info.Waiters != 1 || info.Orphans != 0 {
		t.Errorf("got %d waiters and %d orphans, want 1 and 0", info.Waiters, info.Orphans)
	}
}

func TestRepeatAdoptsAnOrphanInItsPlace(t *testing.T) {
	n := orphaned(t)
	n.at(10, acquire("c", 1, 0, time.Minute))
	wantInLine(t, n.at(40, acquire("b", 1, ms(500), time.Minute)))
	n.at(60)
	if info := n.info(60, "k"); info.Waiters != 2 || info.Orphans != 0 {
		t.Fatalf("got %d waiters and %d orphans, want 2 and 0", info.Waiters, info.Orphans)
	}
	n.at(100)
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Fatalf("got grants to %v, want b", got)
	}
	n.at(200)
	if info := n.info(200, "k"); info.Holders != 1 {
		t.Errorf("got %d holders, want the adopted grant to stay", info.Holders)
	}
}

func TestGrantToAnOrphanIsGivenBackAfterTheGrace(t *testing.T) {
	n := orphaned(t)
	n.at(10, release("a"))
	if info := n.info(10, "k"); info.Holders != 1 || info.Counters.GrantsWaited != 1 {
		t.Fatalf("got %+v, want the orphan granted", info)
	}
	n.at(50)
	info := n.info(50, "k")
	if info.Holders != 0 || info.Available != 1 || info.Counters.GrantsWaited != 0 || info.Counters.Expirations != 0 {
		t.Errorf("got %+v, want the grant undone", info)
	}
}

func TestGrantToAnOrphanStaysOnceSomebodyIsToldOfIt(t *testing.T) {
	for name, adopt := range map[string]semaphore.Request{
		"replay": acquire("b", 1, 0, 0),
		"renew":  semaphore.Renew{Key: "k", Holder: "b"},
		"fresh":  semaphore.Acquire{Key: "k", Holder: "b", Permits: 1, Fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := orphaned(t)
			n.at(10, release("a"))
			n.at(20, adopt)
			n.at(400)
			if info := n.info(400, "k"); info.Holders != 1 {
				t.Errorf("got %d holders, want 1", info.Holders)
			}
		})
	}
}

func TestGrantDecidedBeforeTheLossStays(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.from = 2
	n.grant(n.at(0, acquire("b", 1, ms(500), 0)))
	n.lose(1, 2, ms(50))
	n.at(499)
	if info := n.info(499, "k"); info.Holders != 1 {
		t.Errorf("got %d holders, want 1", info.Holders)
	}
}

func TestWaiterWithAMadeIdLeavesWithItsNode(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 2})
	n.grant(n.at(0, acquire("a", 1, ms(500), 0)))
	n.from = 2
	large := acquire("made", 2, 0, time.Minute)
	large.Made = true
	n.at(0, large)
	n.from = 1
	n.at(0, acquire("c", 1, 0, time.Minute))
	n.lose(1, 2, ms(50))
	if info := n.info(1, "k"); info.Waiters != 0 || info.Holders != 2 {
		t.Errorf("got %d waiters and %d holders, want c granted behind who left", info.Waiters, info.Holders)
	}
}

func TestOrphansWaitEndsEvenBeforeTheGrace(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 0})
	n.from = 2
	n.at(0, acquire("b", 1, 0, ms(20)))
	n.lose(0, 2, ms(50))
	n.at(20)
	if info := n.info(20, "k"); info.Waiters != 0 || len(n.events) != 0 {
		t.Errorf("got %d waiters and %+v, want b gone and nobody told", info.Waiters, n.events)
	}
}

func TestGiveBackUndoesAGrantThatNobodyWasToldOf(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	g := n.grant(n.at(0, acquire("a", 1, 0, 0)))
	n.at(0, acquire("b", 1, 0, time.Minute))
	back := GiveBack{Key: "k", Holder: "a", Token: g.Token, Ticket: g.Ticket}
	wrong := back
	wrong.Ticket.Number++
	wantNumber(t, n.at(1, wrong), 0)
	wantNumber(t, n.at(1, GiveBack{Key: "k", Holder: "a", Token: g.Token}), 0)
	wantNumber(t, n.at(1, back), 1)
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want b", got)
	}
	info := n.info(1, "k")
	if c := info.Counters; c.GrantsImmediate != 0 || c.GrantsWaited != 1 || c.Releases != 0 {
		t.Errorf("got %+v, want the grant to a undone and not released", c)
	}
	wantNumber(t, n.at(1, back), 0)
}

func TestGiveBackDoesNothingOnceTheGrantWasToldAgain(t *testing.T) {
	for name, told := range map[string]semaphore.Request{
		"replay": acquire("a", 1, 0, 0),
		"renew":  semaphore.Renew{Key: "k", Holder: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.at(0, semaphore.Create{Key: "k", Capacity: 1})
			g := n.grant(n.at(0, acquire("a", 1, 0, 0)))
			n.at(0, told)
			wantNumber(t, n.at(1, GiveBack{Key: "k", Holder: "a", Token: g.Token, Ticket: g.Ticket}), 0)
			if info := n.info(1, "k"); info.Holders != 1 {
				t.Errorf("got %d holders, want 1", info.Holders)
			}
		})
	}
}

func TestLeaveGoesByTicket(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 0})
	n.at(0, acquire("a", 1, 0, time.Minute))
	mine := semaphore.Ticket{Incarnation: 1, Number: n.ticket - 1}
	n.at(0, acquire("a", 1, 0, time.Minute))
	wantNumber(t, n.at(1, Leave{Key: "k", Holder: "a", Ticket: mine}), 0)
	mine.Number++
	wantNumber(t, n.at(1, Leave{Key: "k", Holder: "a", Ticket: mine}), 1)
	if len(n.events) != 1 || n.events[0].Ticket != mine || n.events[0].Reply != (semaphore.Reply{}) {
		t.Errorf("got %+v, want nil for %v", n.events, mine)
	}
}

func TestEntryOfAnotherLeadershipIsVoid(t *testing.T) {
	n := newNode(t)
	before := snapshotOf(t, n.s)
	b := newBatch(testTerm - 1)
	b.Section(1, 1, n.limits)
	b.Add(AppendRequest(nil, semaphore.Create{Key: "k", Capacity: 1}), 1)
	for _, entry := range [][]byte{b.Seal(99, 99), EncodeOpen(Open{Term: testTerm - 1, Incarnation: 4})} {
		out, err := n.s.Apply(entry, testTerm, everybody)
		if err != nil || !out.Void || out.Open != nil || len(out.Sections) > 0 {
			t.Errorf("got %+v, %v, want a void outcome", out, err)
		}
	}
	if string(before) != string(snapshotOf(t, n.s)) {
		t.Error("a void entry changed the state")
	}
	out, err := n.s.Apply(EncodeOpen(Open{Term: testTerm, Incarnation: 4}), testTerm, nil)
	if err != nil || out.Open == nil || *out.Open != (Open{testTerm, 4}) || out.Void {
		t.Errorf("got %+v, %v, want the Open", out, err)
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	n := newNode(t)
	n.at(100)
	n.at(50)
	if got := n.s.Now(); got != 100_000 {
		t.Errorf("got %d, want 100000", got)
	}
}

func TestNobodyIsToldWhatTheyDidNotWant(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.at(0, acquire("a", 1, 0, 0))
	n.at(0, acquire("b", 1, 0, time.Minute))
	out, err := n.s.Apply(entryOf(0, release("a"), semaphore.Inspect{Key: "k"}), testTerm, func(i uint64) bool { return i == 99 })
	if err != nil || len(out.Sections) != 0 || len(out.Events) != 0 {
		t.Errorf("got %+v, %v, want nothing", out, err)
	}
	if info := n.info(0, "k"); info.Counters.GrantsWaited != 1 {
		t.Errorf("got %+v, want b granted all the same", info.Counters)
	}
}

func TestLineIsBounded(t *testing.T) {
	n := newNode(t)
	n.limits.MaxWaiters, n.limits.MaxWaitersAll = 2, 3
	n.at(0, semaphore.Create{Key: "k", Capacity: 0}, semaphore.Create{Key: "k2", Capacity: 0})
	wantInLine(t, n.at(0, acquire("a", 1, 0, time.Minute)))
	wantInLine(t, n.at(0, acquire("b", 1, 0, time.Minute)))
	wantCode(t, n.at(0, acquire("c", 1, 0, time.Minute)), semaphore.CodeQueueFull)
	elsewhere := func(holder string) semaphore.Acquire {
		return semaphore.Acquire{Key: "k2", Holder: holder, Permits: 1, Wait: time.Minute}
	}
	wantInLine(t, n.at(0, elsewhere("a")))
	wantCode(t, n.at(0, elsewhere("b")), semaphore.CodeQueueFull)
	wantInLine(t, n.at(0, acquire("b", 1, 0, time.Minute)))
}

func TestUnusedSemaphoreOfAnAcquireIsRemoved(t *testing.T) {
	n := newNode(t)
	n.limits.DefaultIdle = ms(100)
	q := acquire("a", 1, ms(30), 0)
	q.Create, q.Capacity = true, 2
	n.grant(n.at(0, q))
	n.at(129)
	if n.s.Stats().Semaphores != 1 {
		t.Fatal("removed before IDLE had passed")
	}
	n.at(130)
	if n.s.Stats().Semaphores != 0 {
		t.Error("not removed after IDLE")
	}
}

func TestCreateMakesASemaphoreOfAnAcquirePermanent(t *testing.T) {
	n := newNode(t)
	n.limits.DefaultIdle = ms(100)
	q := acquire("a", 1, ms(30), 0)
	q.Create, q.Capacity = true, 2
	n.grant(n.at(0, q))
	n.one(n.at(0, semaphore.Create{Key: "k", Capacity: 2}))
	n.at(10_000)
	if info := n.info(10_000, "k"); info.Settings.Idle.Given {
		t.Errorf("got %+v, want no IDLE", info.Settings)
	}
}

func TestConflictNamesWhatIsStored(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1, Settings: semaphore.Settings{Lease: semaphore.Set(ms(1500))}})
	replies := n.at(0, semaphore.Create{Key: "k", Capacity: 99})
	want := "CONFLICT this semaphore exists with CAPACITY 1 LEASE 1500"
	if !errors.Is(replies[0].Err, &semaphore.Error{Code: semaphore.CodeConflict}) || replies[0].Err.Error() != want {
		t.Errorf("got %v, want %s", replies[0].Err, want)
	}
	n.one(n.at(0, semaphore.Create{Key: "k", Capacity: 99, IfAbsent: true}))
	n.one(n.at(0, semaphore.Create{Key: "k", Capacity: 1, Settings: semaphore.Settings{Lease: semaphore.Set(ms(1500))}}))
	if info := n.info(0, "k"); info.Capacity != 1 {
		t.Errorf("got capacity %d, want 1", info.Capacity)
	}
}

func TestLeaseAboveMaxLeaseIsRefusedOnlyWhenNamed(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 9, Settings: semaphore.Settings{MaxLease: semaphore.Set(ms(1000))}})
	wantCode(t, n.at(0, acquire("a", 1, ms(1001), 0)), semaphore.CodeInvalid)
	wantCode(t, n.at(0, acquire("a", 1, semaphore.Persist, 0)), semaphore.CodeInvalid)
	if g := n.grant(n.at(0, acquire("a", 1, 0, 0))); g.Lease != ms(1000) {
		t.Errorf("got lease %v, want 1s", g.Lease)
	}
	wantCode(t, n.at(0, semaphore.Renew{Key: "k", Holder: "a", Lease: ms(1001)}), semaphore.CodeInvalid)
	wantCode(t, n.at(0, semaphore.Resize{Key: "k", Capacity: 1, Settings: semaphore.Settings{Lease: semaphore.Set(ms(2000))}}), semaphore.CodeInvalid)
	if info := n.info(0, "k"); info.Capacity != 9 || info.Settings.Lease.Given {
		t.Errorf("got %+v, want nothing changed", info)
	}
}

func TestPersistentGrantStays(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	if g := n.grant(n.at(0, acquire("a", 1, semaphore.Persist, 0))); g.Lease != semaphore.Persist {
		t.Errorf("got lease %v, want Persist", g.Lease)
	}
	wantNumber(t, n.at(1<<40, semaphore.Renew{Key: "k", Holder: "a"}), -1)
	if info := n.info(1<<40, "k"); info.NextExpiry.Given {
		t.Errorf("got next expiry %v, want none", info.NextExpiry)
	}
	wantNumber(t, n.at(1<<40, release("a")), 1)
}

// alive is orphaned, but the node that was given up lives and asks again for b.
func alive(t *testing.T) (*node, Rejoin) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.at(0, acquire("a", 1, 0, 0))
	b := acquire("b", 1, 0, ms(500))
	n.from = 2
	wantInLine(t, n.at(0, b))
	old := semaphore.Ticket{Incarnation: 2, Number: n.ticket - 1}
	n.from = 1
	n.lose(0, 2, ms(50))
	wantInLine(t, n.at(0, acquire("c", 1, 0, time.Minute)))
	n.from = 2
	return n, Rejoin{b, old}
}

func TestRejoinTakesTheOldPlace(t *testing.T) {
	n, b := alive(t)
	wantInLine(t, n.at(10, b))
	n.at(20, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want b", got)
	}
}

func TestRejoinGetsTheGrantThatWasMadeMeanwhile(t *testing.T) {
	n, b := alive(t)
	n.at(10, release("a"))
	if got := n.grantees(); len(got) != 0 {
		t.Fatalf("got grants to %v, want nobody told for an orphan", got)
	}
	if g := n.grant(n.at(20, b)); g.Replayed {
		t.Errorf("got %+v, want a grant of which nobody has been told", g)
	}
	n.at(60)
	if info := n.info(60, "k"); info.Holders != 1 || info.Orphans != 0 {
		t.Errorf("got %+v, want the grant to stay", info)
	}
}

func TestRejoinIsSupersededWhereTheHolderStandsInLineOtherwise(t *testing.T) {
	n, b := alive(t)
	n.from = 3
	wantInLine(t, n.at(10, acquire("b", 1, 0, ms(500))))
	n.from = 2
	wantCode(t, n.at(20, b), semaphore.CodeSuperseded)
}

func TestRejoinAfterTheGraceSaysThatTheOutcomeIsNotKnown(t *testing.T) {
	n, b := alive(t)
	wantCode(t, n.at(60, b), semaphore.CodeUncertain)
	n.at(70, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "c" {
		t.Errorf("got grants to %v, want c", got)
	}
}

func TestRejoinOfAMadeIDJoinsAtTheEnd(t *testing.T) {
	n, b := alive(t)
	b.Made = true
	wantInLine(t, n.at(60, b))
	n.at(70, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "c" {
		t.Errorf("got grants to %v, want c", got)
	}
}

func TestCancelledOrphanDoesNotComeBack(t *testing.T) {
	n, b := alive(t)
	n.at(10, semaphore.Cancel{Key: "k", Holder: "b"})
	wantCode(t, n.at(20, b), semaphore.CodeUncertain)
	if info := n.info(20, "k"); info.Waiters != 1 {
		t.Errorf("got %d waiters, want c alone", info.Waiters)
	}
}

func TestRejoinDoesNotMakeADeletedSemaphoreAgain(t *testing.T) {
	n, b := alive(t)
	b.Create, b.Capacity = true, 1
	n.at(10, semaphore.Delete{Key: "k", Force: true})
	wantCode(t, n.at(20, b), semaphore.CodeNoSem)
}

func TestRejoinIsSupersededByTheGrantOfAnother(t *testing.T) {
	n, b := alive(t)
	n.from = 3
	wantInLine(t, n.at(10, acquire("b", 1, 0, ms(500))))
	n.at(12, release("a"))
	n.from = 2
	wantCode(t, n.at(20, b), semaphore.CodeSuperseded)
}

func TestRejoinWithoutATicketIsForWhateverItsNodeAskedFor(t *testing.T) {
	n, b := alive(t)
	wantInLine(t, n.at(10, b)) // its answer was lost
	n.at(12, release("a"))
	b.Old, b.Wait = semaphore.Ticket{}, 0
	if g := n.grant(n.at(20, b)); g.Replayed {
		t.Errorf("got %+v, want the grant of which nobody has been told", g)
	}
}
