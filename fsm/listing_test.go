package fsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func TestScanSeesWhateverStaysExactlyOnce(t *testing.T) {
	n := newNode(t)
	for i := range 50 {
		n.at(0, semaphore.Create{Key: fmt.Sprintf("stays-%d", i), Capacity: 1}, semaphore.Create{Key: fmt.Sprintf("goes-%d", i), Capacity: 1})
	}
	seen := make(map[string]int)
	for cursor, i := uint64(0), 0; ; i++ {
		page := n.one(n.at(0, semaphore.Scan{Cursor: cursor, Count: 7})).(*semaphore.KeyPage)
		if len(page.Keys) > 7 {
			t.Fatalf("got %d keys, want at most 7", len(page.Keys))
		}
		for _, key := range page.Keys {
			seen[key]++
		}
		if cursor = page.Next; cursor == 0 {
			break
		}
		n.at(0, semaphore.Delete{Key: fmt.Sprintf("goes-%d", i*5)}, semaphore.Create{Key: fmt.Sprintf("comes-%d", i), Capacity: 1})
	}
	for i := range 50 {
		if got := seen[fmt.Sprintf("stays-%d", i)]; got != 1 {
			t.Errorf("stays-%d: seen %d times, want once", i, got)
		}
	}
}

func TestHoldersAndWaitersAreListedInPages(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 25})
	for i := range 60 {
		q := acquire(fmt.Sprint(i), 1, time.Hour, time.Minute)
		q.Label = "client"
		n.at(int64(i), q)
	}
	var holders, waiters []string
	for cursor := uint64(0); ; {
		page := n.one(n.at(100, semaphore.Holders{Key: "k", Cursor: cursor, Count: 10})).(*semaphore.HolderPage)
		for _, row := range page.Rows {
			holders = append(holders, row.Holder)
			if row.Client != "client" || row.Permits != 1 || row.Held+row.Remaining != time.Hour {
				t.Errorf("got %+v, want held and remaining to make an hour", row)
			}
		}
		n.at(100, release(fmt.Sprint(len(holders)-1)))
		if cursor = page.Next; cursor == 0 {
			break
		}
	}
	for cursor := uint64(0); ; {
		page := n.one(n.at(100, semaphore.Waiters{Key: "k", Cursor: cursor, Count: 10})).(*semaphore.WaiterPage)
		for _, row := range page.Rows {
			waiters = append(waiters, row.Holder)
			if row.Waited+row.Remaining != time.Minute {
				t.Errorf("got %+v, want waited and remaining to make a minute", row)
			}
		}
		if cursor = page.Next; cursor == 0 {
			break
		}
	}
	// Each page of holders was followed by one release, which moved the head of the line to the end.
	if got, want := len(holders), 27; got != want || holders[26] != "26" {
		t.Errorf("got %d holders %v, want %d in order", got, holders, want)
	}
	if got, want := len(waiters), 32; got != want || waiters[0] != "28" || waiters[31] != "59" {
		t.Errorf("got %d waiters %v, want 28 … 59", got, waiters)
	}
}

func TestCountersMoveByWhatHappened(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.at(0, acquire("a", 1, ms(100), 0))        // at once
	n.at(10, acquire("b", 1, ms(100), 0))       // refused
	n.at(10, acquire("b", 1, ms(100), ms(20)))  // times out at 30
	n.at(20, acquire("c", 1, ms(100), ms(200))) // granted at 50
	n.at(40, semaphore.Renew{Key: "k", Holder: "a"})
	n.at(50, release("a")) // held for 50
	n.at(160)              // c's lease ended at 150, held for 100
	n.at(160, acquire("d", 1, ms(100), 0))
	n.at(165, acquire("e", 1, ms(100), ms(200)))
	n.at(170, semaphore.Cancel{Key: "k", Holder: "e"})
	got := n.info(170, "k").Counters
	want := semaphore.Counters{
		GrantsImmediate: 2, GrantsWaited: 1, Refused: 1, WaitTimeouts: 1, WaitTotal: ms(20 + 30 + 5),
		Releases: 1, Renewals: 1, Expirations: 1, HeldTotal: ms(50 + 100),
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	stats := n.s.Stats()
	wantStats := Stats{Semaphores: 1, Holders: 1, InUse: 1, Granted: 3, Released: 1, Renewed: 1, Expired: 1, Refused: 1, TimedOut: 1}
	if stats != wantStats {
		t.Errorf("got %+v, want %+v", stats, wantStats)
	}
}

func TestTenThousandWaitersAreServedInOrder(t *testing.T) {
	const line = 10_000
	s := New()
	applyAll(t, s, 0, semaphore.Create{Key: "k", Capacity: 1}, acquire("-1", 1, time.Hour, 0))
	var all []semaphore.Request
	for i := range line {
		all = append(all, acquire(fmt.Sprint(i), 1, time.Hour, time.Minute))
	}
	applyAll(t, s, 0, all...)
	for i := -1; i < line-1; i++ {
		out, err := s.Apply(entryOf(1, release(fmt.Sprint(i))), testTerm, everybody)
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Events) != 1 || out.Events[0].Reply.Value.(*semaphore.Grant).Holder != fmt.Sprint(i+1) {
			t.Fatalf("got %+v behind %d, want one grant to the next", out.Events, i)
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
