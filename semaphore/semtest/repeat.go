package semtest

import (
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// repeatCases are about a holder that asks again.
func repeatCases() []testCase {
	return []testCase{
		{"RepeatGivesTheSameGrant", repeatGivesTheSameGrant},
		{"RepeatIsNotRefusedWhenFull", repeatIsNotRefusedWhenFull},
		{"RepeatWithOtherPermitsIsAConflict", repeatWithOtherPermitsIsAConflict},
		{"RepeatAfterReleaseIsANewGrant", repeatAfterReleaseIsANewGrant},
		{"RepeatAtOnceTakesOnePermit", repeatAtOnceTakesOnePermit},
		{"FreshFencesTheOldProcess", freshFencesTheOldProcess},
		{"TakeOverKeepsThePlace", takeOverKeepsThePlace},
		{"TakeOverCountsTheNewerWait", takeOverCountsTheNewerWait},
		{"RepeatWithoutWaitLeavesThePlaceAlone", repeatWithoutWaitLeavesThePlaceAlone},
		{"HolderIsKnownPerSemaphore", holderIsKnownPerSemaphore},
	}
}

func repeatGivesTheSameGrant(s *sem) {
	s.create(3)
	first := s.grant(semaphore.Acquire{Holder: "a", Permits: 2, Lease: long})
	equal(s, "replayed", first.Replayed, false)
	s.pass(50 * time.Millisecond)

	again := s.grant(semaphore.Acquire{Holder: "a", Permits: 2, Lease: 2 * long, Wait: long})
	equal(s, "replayed", again.Replayed, true)
	equal(s, "token", again.Token, first.Token)
	if !slices.Equal(again.Slots, first.Slots) {
		s.Fatalf("slots: got %v, want %v", again.Slots, first.Slots)
	}
	if again.Lease > long-50*time.Millisecond {
		s.Fatalf("lease: got %v, want what is left of %v", again.Lease, long)
	}
	s.books(2, 1, 0)
}

func repeatIsNotRefusedWhenFull(s *sem) {
	s.create(1)
	first := s.grant(semaphore.Acquire{Holder: "a"})
	s.wait(semaphore.Acquire{Holder: "b"})
	again := s.grant(semaphore.Acquire{Holder: "a"})
	equal(s, "token", again.Token, first.Token)
	s.books(1, 0, 1)
}

func repeatWithOtherPermitsIsAConflict(s *sem) {
	s.create(3)
	s.grant(semaphore.Acquire{Holder: "a"})
	s.refused(semaphore.CodeConflict, s.ask(semaphore.Acquire{Holder: "a", Permits: 2}))
	s.refused(semaphore.CodeConflict, s.ask(semaphore.Acquire{Holder: "a", Permits: 2, Wait: long}))
	s.refused(semaphore.CodeConflict, s.ask(semaphore.Acquire{Holder: "a", Permits: 2, Fresh: true}))
	s.books(1, 2, 0)
}

func repeatAfterReleaseIsANewGrant(s *sem) {
	s.create(1)
	first := s.grant(semaphore.Acquire{Holder: "a"})
	equal(s, "release", s.release("a"), 1)
	second := s.grant(semaphore.Acquire{Holder: "a"})
	equal(s, "replayed", second.Replayed, false)
	s.grows(first, second)
}

func repeatAtOnceTakesOnePermit(s *sem) {
	s.create(3)
	const clients = 20
	replies := make([]semaphore.Reply, clients)
	var done sync.WaitGroup
	for i := range clients {
		done.Go(func() { replies[i] = s.do(s.ask(semaphore.Acquire{Holder: "a", Wait: long})) })
	}
	done.Wait()

	tokens, news := map[int64]bool{}, 0
	for _, reply := range replies {
		g := s.granted(reply, s.ask(semaphore.Acquire{Holder: "a"}))
		tokens[g.Token] = true
		if !g.Replayed {
			news++
		}
	}
	equal(s, "different tokens", len(tokens), 1)
	equal(s, "grants not replayed", news, 1)
	s.books(1, 2, 0)
}

func freshFencesTheOldProcess(s *sem) {
	s.create(3)
	s.grant(semaphore.Acquire{Holder: "other"})
	old := s.grant(semaphore.Acquire{Holder: "a", Permits: 2, Lease: 200 * time.Millisecond})
	fresh := s.grant(semaphore.Acquire{Holder: "a", Permits: 2, Lease: long, Fresh: true})

	equal(s, "replayed", fresh.Replayed, false)
	s.grows(old, fresh)
	if !slices.Equal(fresh.Slots, old.Slots) {
		s.Fatalf("slots: got %v, want %v", fresh.Slots, old.Slots)
	}
	equal(s, "check of the old grant", s.check(old), 0)
	equal(s, "release of the old grant", s.number(semaphore.Release{Key: s.key, Holder: "a", Token: old.Token}), 0)
	equal(s, "renewal of the old grant", s.number(semaphore.Renew{Key: s.key, Holder: "a", Lease: long, Token: old.Token}), 0)
	s.pass(250 * time.Millisecond)
	equal(s, "check of the new grant after the old lease", s.check(fresh), 1)
	s.books(3, 0, 0)
}

func takeOverKeepsThePlace(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	older := s.wait(semaphore.Acquire{Holder: "b", Lease: long})
	behind := s.wait(semaphore.Acquire{Holder: "c"})
	newer := s.wait(semaphore.Acquire{Holder: "b", Lease: 7 * time.Second})

	older.refused(semaphore.CodeSuperseded)
	s.books(1, 0, 2)
	equal(s, "release", s.release("a"), 1)
	if g := newer.granted(); g.Lease > 7*time.Second {
		s.Fatalf("lease: got %v, want the newer request's 7s", g.Lease)
	}
	behind.unanswered()
	older.unanswered()
	s.books(1, 0, 1)
}

func takeOverCountsTheNewerWait(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	s.wait(semaphore.Acquire{Holder: "shortened", Wait: long})
	began := time.Now()
	shortened := s.wait(semaphore.Acquire{Holder: "shortened", Wait: 150 * time.Millisecond})
	brief := s.wait(semaphore.Acquire{Holder: "lengthened", Wait: 10 * time.Second})
	lengthened := s.wait(semaphore.Acquire{Holder: "lengthened", Wait: long})

	brief.refused(semaphore.CodeSuperseded)
	shortened.none()
	s.notBefore(began, 150*time.Millisecond)
	row := value[*semaphore.WaiterPage](s, semaphore.Waiters{Key: s.key, Count: 10}).Rows[0]
	equal(s, "head of the line", row.Holder, "lengthened")
	if row.Remaining <= 10*time.Second {
		s.Fatalf("remaining wait: got %v, want that of the newer request", row.Remaining)
	}
	lengthened.unanswered()
	s.books(1, 0, 1)
}

func repeatWithoutWaitLeavesThePlaceAlone(s *sem) {
	s.create(3)
	s.grant(semaphore.Acquire{Holder: "a", Permits: 3})
	b := s.wait(semaphore.Acquire{Holder: "b"})
	s.none(semaphore.Acquire{Holder: "b"})
	s.refused(semaphore.CodeConflict, s.ask(semaphore.Acquire{Holder: "b", Permits: 2, Wait: long}))
	s.books(3, 0, 1)
	equal(s, "release", s.release("a"), 1)
	b.granted()
	s.books(1, 2, 0)
}

func holderIsKnownPerSemaphore(s *sem) {
	other := s.beside("other")
	s.create(1)
	other.create(1)
	first := s.grant(semaphore.Acquire{Holder: "a"})
	second := other.grant(semaphore.Acquire{Holder: "a"})
	equal(s, "replayed", second.Replayed, false)
	equal(s, "check on the other semaphore", other.check(first), 0)
	equal(s, "release", s.release("a"), 1)
	other.books(1, 0, 0)
}
