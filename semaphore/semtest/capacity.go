package semtest

import (
	"fmt"

	"github.com/semserver/semserver/semaphore"
)

// capacityCases are about how many permits there are.
func capacityCases() []testCase {
	return []testCase{
		{"NeverMoreThanCapacity", neverMoreThanCapacity},
		{"MoreThanCapacityIsRefusedAtOnce", moreThanCapacityIsRefusedAtOnce},
		{"LargestCapacityWorks", largestCapacityWorks},
		{"ReleaseTwiceFreesOnce", releaseTwiceFreesOnce},
		{"ReleaseNamesTheToken", releaseNamesTheToken},
		{"ShrinkTakesFromNobody", shrinkTakesFromNobody},
		{"ReconcileLeavesBalancedBooksAlone", reconcileLeavesBalancedBooksAlone},
		{"DeleteMindsHolders", deleteMindsHolders},
		{"DeleteByForceRefusesTheLine", deleteByForceRefusesTheLine},
	}
}

func neverMoreThanCapacity(s *sem) {
	s.create(3)
	for i := range 3 {
		equal(s, "slot", s.grant(semaphore.Acquire{Holder: fmt.Sprint(i)}).Slot(), int64(i))
	}
	for i := range 3 {
		s.none(semaphore.Acquire{Holder: fmt.Sprint("more", i)})
	}
	s.books(3, 0, 0)
}

func moreThanCapacityIsRefusedAtOnce(s *sem) {
	s.create(2)
	s.refused(semaphore.CodeTooMany, s.ask(semaphore.Acquire{Holder: "a", Permits: 3, Wait: long}))
	s.refused(semaphore.CodeTooMany, s.ask(semaphore.Acquire{Holder: "a", Permits: semaphore.MaxCapacity}))
	s.books(0, 2, 0)
}

func largestCapacityWorks(s *sem) {
	all, many := s.bounds.Capacity, min(s.bounds.Permits, s.bounds.Capacity-1)
	s.create(all)
	s.grant(semaphore.Acquire{Holder: "one"})
	g := s.grant(semaphore.Acquire{Holder: "many", Permits: many})
	equal(s, "slots", fmt.Sprint(g.Slots), fmt.Sprint([]semaphore.Range{{First: 1, Last: many}}))
	s.books(1+many, all-1-many, 0)
	if 1+many == all {
		s.none(semaphore.Acquire{Holder: "more"})
	}
	equal(s, "release", s.release("many"), 1)
	s.books(1, all-1, 0)
}

func releaseTwiceFreesOnce(s *sem) {
	s.create(3)
	s.grant(semaphore.Acquire{Holder: "a", Permits: 2})
	s.grant(semaphore.Acquire{Holder: "b"})
	equal(s, "first release", s.release("a"), 1)
	equal(s, "second release", s.release("a"), 0)
	equal(s, "release by who never held", s.release("c"), 0)
	s.books(1, 2, 0)
}

func releaseNamesTheToken(s *sem) {
	s.create(1)
	g := s.grant(semaphore.Acquire{Holder: "a"})
	for _, wrong := range []int64{g.Token - 1, g.Token + 1} {
		equal(s, "release", s.number(semaphore.Release{Key: s.key, Holder: "a", Token: wrong}), 0)
		equal(s, "renew", s.number(semaphore.Renew{Key: s.key, Holder: "a", Lease: long, Token: wrong}), 0)
	}
	s.books(1, 0, 0)
	equal(s, "renew", s.number(semaphore.Renew{Key: s.key, Holder: "a", Lease: long, Token: g.Token}), long.Milliseconds())
	equal(s, "release", s.number(semaphore.Release{Key: s.key, Holder: "a", Token: g.Token}), 1)
}

func shrinkTakesFromNobody(s *sem) {
	s.create(5)
	for i := range 5 {
		s.grant(semaphore.Acquire{Holder: fmt.Sprint(i)})
	}
	equal(s, "usage", s.resize(2), semaphore.Usage{Capacity: 2, InUse: 5, Available: 0})
	equal(s, "excess", s.info().Excess, 3)
	w := s.wait(semaphore.Acquire{Holder: "w"})
	for i := range 3 {
		equal(s, "renew", s.renew(fmt.Sprint(i), long), long.Milliseconds())
		equal(s, "release", s.release(fmt.Sprint(i)), 1)
		w.unanswered()
		s.books(int64(4-i), 0, 1)
	}
	equal(s, "excess", s.info().Excess, 0)
	equal(s, "rows while a high slot is in use", s.info().Rows, 5)
	equal(s, "release", s.release("3"), 1)
	equal(s, "slot", w.granted().Slot(), 0)
	equal(s, "release", s.release("4"), 1)
	equal(s, "rows", s.info().Rows, 2)
	s.books(1, 1, 0)
}

func reconcileLeavesBalancedBooksAlone(s *sem) {
	s.refused(semaphore.CodeNoSem, semaphore.Reconcile{Key: s.key})
	s.create(3)
	s.grant(semaphore.Acquire{Holder: "a"})
	s.grant(semaphore.Acquire{Holder: "b"})
	equal(s, "reconcile", s.number(semaphore.Reconcile{Key: s.key}), 0)
	s.books(2, 1, 0)
}

func deleteMindsHolders(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	s.refused(semaphore.CodeInUse, semaphore.Delete{Key: s.key})
	s.books(1, 0, 0)
	equal(s, "release", s.release("a"), 1)
	equal(s, "delete", s.number(semaphore.Delete{Key: s.key}), 1)
	equal(s, "second delete", s.number(semaphore.Delete{Key: s.key, Force: true}), 0)
	s.refused(semaphore.CodeNoSem, semaphore.Inspect{Key: s.key})
}

func deleteByForceRefusesTheLine(s *sem) {
	s.create(1)
	old := s.grant(semaphore.Acquire{Holder: "a"})
	line := s.line(3)
	equal(s, "delete", s.number(semaphore.Delete{Key: s.key, Force: true}), 1)
	for _, w := range line {
		w.refused(semaphore.CodeNoSem)
	}
	equal(s, "release", s.release("a"), 0)

	s.create(2)
	s.books(0, 2, 0)
	equal(s, "check of the old grant", s.check(old), 0)
	s.grows(old, s.grant(semaphore.Acquire{Holder: "a"}))
}
