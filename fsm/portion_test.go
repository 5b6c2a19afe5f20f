package fsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// TestLeasesThatEndTogetherAreProcessedInPortions ends many leases in one instant and watches, entry
// by entry, that no more than a portion is processed, that another semaphore is served meanwhile, and
// that no answer tells of a lease that is over.
func TestLeasesThatEndTogetherAreProcessedInPortions(t *testing.T) {
	const leases = 5*portion + 100
	for _, semaphores := range []int{1, leases} {
		t.Run(fmt.Sprintf("semaphores=%d", semaphores), func(t *testing.T) {
			s := New()
			applyAll(t, s, 0, semaphore.Create{Key: "other", Capacity: 1})
			var all []semaphore.Request
			for i := range leases {
				all = append(all, semaphore.Acquire{
					Key: fmt.Sprintf("key-%d", i%semaphores), Holder: fmt.Sprint(i), Permits: 1,
					Lease: time.Second, Create: true, Capacity: leases,
				})
			}
			applyAll(t, s, 0, all...)
			entries, before := 0, s.Stats().Holders
			for before > 0 {
				entries++
				out, err := s.Apply(entryOf(2_000_000,
					semaphore.Acquire{Key: "other", Holder: "a", Permits: 1},
					semaphore.Release{Key: "other", Holder: "a"},
					semaphore.Inspect{Key: "key-0"},
				), testTerm, everybody)
				if err != nil {
					t.Fatal(err)
				}
				replies := out.Sections[0].Replies
				if _, ok := replies[0].Value.(*semaphore.Grant); !ok {
					t.Fatalf("got %+v from another semaphore, want a grant", replies[0])
				}
				if info := replies[2].Value.(*semaphore.Info); info.InUse != 0 || info.Holders != 0 || info.Available != leases {
					t.Fatalf("got %+v, want every permit available", info)
				}
				after := s.Stats().Holders
				if before-after > portion {
					t.Fatalf("got %d leases processed by one entry, want at most %d", before-after, portion)
				}
				if next, ok := s.Next(); after > 0 && (!ok || next > s.Now()) {
					t.Fatalf("got next %v at %v, want work to go on at once", next, s.Now())
				}
				before = after
			}
			if entries != 6 {
				t.Errorf("got %d entries, want 6", entries)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEndedLeasesCountAsFreeBeforeTheyAreProcessed asks, in the entry in which they end, for all the
// permits of many leases.
func TestEndedLeasesCountAsFreeBeforeTheyAreProcessed(t *testing.T) {
	const leases = 3 * portion
	s := crowded(t, leases, time.Second)
	applyAll(t, s, 0, semaphore.Resize{Key: "k", Capacity: leases})
	out, err := s.Apply(entryOf(2_000_000,
		semaphore.Release{Key: "k", Holder: fmt.Sprintf("holder-%09d", leases-1)},
		semaphore.Renew{Key: "k", Holder: fmt.Sprintf("holder-%09d", leases-1)},
		semaphore.Acquire{Key: "k", Holder: fmt.Sprintf("holder-%09d", leases-1), Permits: leases},
	), testTerm, everybody)
	if err != nil {
		t.Fatal(err)
	}
	replies := out.Sections[0].Replies
	wantNumber(t, replies[:1], 0)
	wantNumber(t, replies[1:2], 0)
	if g, ok := replies[2].Value.(*semaphore.Grant); !ok || g.Slots[0] != (semaphore.Range{First: 0, Last: leases - 1}) {
		t.Errorf("got %+v, want all permits granted", replies[2])
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestLargeResizeServesTheLineInPortions grows a semaphore by more than a portion, with another one
// served meanwhile and the order of the line kept.
func TestLargeResizeServesTheLineInPortions(t *testing.T) {
	const line = 3*portion + 5
	n := newNode(t)
	n.limits.MaxWaiters = line
	n.at(0, semaphore.Create{Key: "k", Capacity: 0}, semaphore.Create{Key: "other", Capacity: 1})
	var all []semaphore.Request
	for i := range line {
		all = append(all, acquire(fmt.Sprint(i), 1, 0, time.Hour))
	}
	n.at(0, all...)
	n.at(1, semaphore.Resize{Key: "k", Capacity: semaphore.MaxCapacity})
	served := 0
	for entries := 1; ; entries++ {
		for _, e := range n.events {
			if g, ok := e.Reply.Value.(*semaphore.Grant); !ok || g.Holder != fmt.Sprint(served) {
				t.Fatalf("got %+v, want holder %d granted", e.Reply, served)
			}
			served++
		}
		if len(n.events) > portion+3*allowance {
			t.Fatalf("got %d grants by one entry", len(n.events))
		}
		if served == line {
			break
		}
		if next, ok := n.s.Next(); !ok || next > n.s.Now() || entries > 10 {
			t.Fatalf("got next %v, %d served of %d, want the work to go on", next, served, line)
		}
		replies := n.at(1, acquire("late", 1, 0, 0), semaphore.Acquire{Key: "other", Holder: "a", Permits: 1}, semaphore.Release{Key: "other", Holder: "a"})
		if served+len(n.events) < line && replies[0].Value != nil {
			t.Fatalf("got %+v, want nobody to overtake the line", replies[0])
		}
		if _, ok := replies[1].Value.(*semaphore.Grant); !ok {
			t.Fatalf("got %+v from another semaphore, want a grant", replies[1])
		}
	}
}

// TestLargeShrinkSendsWaitersAwayInPortions lowers the capacity below what many waiters ask for.
func TestLargeShrinkSendsWaitersAwayInPortions(t *testing.T) {
	const line = 2*portion + 5
	n := newNode(t)
	n.limits.MaxWaiters = line
	n.at(0, semaphore.Create{Key: "k", Capacity: 3})
	n.grant(n.at(0, acquire("a", 3, 0, 0)))
	var all []semaphore.Request
	for i := range line {
		all = append(all, acquire(fmt.Sprint(i), int64(2+i%2), 0, time.Hour))
	}
	n.at(0, all...)
	n.at(1, semaphore.Resize{Key: "k", Capacity: 2})
	refused := len(n.events)
	for range 10 {
		if next, ok := n.s.Next(); !ok || next > n.s.Now() {
			break
		}
		n.at(1)
		refused += len(n.events)
	}
	if want := line / 2; refused != want {
		t.Errorf("got %d waiters refused, want %d", refused, want)
	}
	if info := n.info(1, "k"); info.Waiters != int64(line-refused) {
		t.Errorf("got %d waiters, want %d", info.Waiters, line-refused)
	}
}

// TestRefusalsInABacklogDoNotLookAgainAndAgain asks many times for a permit while many are overdue and
// none is free: one look at what is overdue must do for all of them.
func TestRefusalsInABacklogDoNotLookAgainAndAgain(t *testing.T) {
	const leases = 100
	s := crowded(t, leases, time.Second)
	applyAll(t, s, 0, semaphore.Resize{Key: "k", Capacity: leases, Settings: semaphore.Settings{Quarantine: semaphore.Set(time.Hour)}})
	small(s, 0, 0)
	refused := semaphore.Acquire{Key: "k", Holder: "late", Permits: 1}
	applyAll(t, s, 2_000_000, refused)
	looked := s.overlay
	applyAll(t, s, 2_000_000, refused, refused)
	if looked == nil || s.overlay != looked {
		t.Error("looked through what is overdue again")
	}
	if got := s.Stats().Refused; got != 3 {
		t.Errorf("got %d refused, want 3", got)
	}
	applyAll(t, s, 2_000_001, refused)
	if s.overlay == looked {
		t.Error("went by an old look after the clock had moved")
	}
}

// TestHoldersOfEndedLeasesReturnBeforeTheyAreProcessed lets many holders ask again in the entry in
// which their leases end, when nothing overdue has been processed: each gets one live grant.
func TestHoldersOfEndedLeasesReturnBeforeTheyAreProcessed(t *testing.T) {
	const holders = 3 * few
	s := small(crowded(t, holders, time.Second), 0, 0)
	var all []semaphore.Request
	for i := range holders {
		all = append(all, semaphore.Acquire{Key: "k", Holder: fmt.Sprintf("holder-%09d", i), Permits: 2})
	}
	out, err := s.Apply(entryOf(2_000_000, all...), testTerm, everybody)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range out.Sections[0].Replies {
		if g, ok := r.Value.(*semaphore.Grant); !ok || g.Replayed {
			t.Fatalf("holder %d: got %+v, want a new grant", i, r)
		}
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	applyAll(t, small(s, portion, allowance), 2_000_000, semaphore.Renew{Key: "k", Holder: "holder-000000007", Lease: semaphore.Persist})
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if got := s.Stats(); got.Holders != holders || got.Expired != holders || got.InUse != 2*holders {
		t.Errorf("got %+v, want %d holders with 2 permits each", got, holders)
	}
}
