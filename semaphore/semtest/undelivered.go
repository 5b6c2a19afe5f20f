package semtest

import (
	"github.com/semserver/semserver/semaphore"
)

// undeliveredCases are about grants that were never told to the client.
func undeliveredCases() []testCase {
	return []testCase{
		{"GiveBackFreesThePermits", giveBackFreesThePermits},
		{"GiveBackServesTheLine", giveBackServesTheLine},
		{"GiveBackOfAWaitersGrant", giveBackOfAWaitersGrant},
		{"GiveBackTwiceFreesOnce", giveBackTwiceFreesOnce},
		{"GiveBackAfterARepeatDoesNothing", giveBackAfterARepeatDoesNothing},
		{"GiveBackAfterARenewalDoesNothing", giveBackAfterARenewalDoesNothing},
		{"GiveBackOfAnEarlierGrantDoesNothing", giveBackOfAnEarlierGrantDoesNothing},
		{"GiveBackGoesByTicket", giveBackGoesByTicket},
	}
}

// undeliverable gives a grant back where that must change nothing. It does not wait for the outcome,
// so it is followed by one that must change something, and waits for that.
func (s *sem) undeliverable(g *semaphore.Grant) {
	s.Helper()
	marker := s.beside("marker")
	marker.confirmed(semaphore.Create{Key: marker.key, Capacity: 1, IfAbsent: true})
	marked := marker.grant(semaphore.Acquire{Holder: "marker"})
	s.backend.GiveBack(s.key, g)
	s.backend.GiveBack(marker.key, marked)
	marker.booksSoon(0, 1, 0)
}

func giveBackFreesThePermits(s *sem) {
	s.create(3)
	g := s.grant(semaphore.Acquire{Holder: "a", Permits: 2})
	s.backend.GiveBack(s.key, g)
	s.booksSoon(0, 3, 0)
	equal(s, "check", s.check(g), 0)
	equal(s, "release", s.release("a"), 0)
	s.grows(g, s.grant(semaphore.Acquire{Holder: "a", Permits: 3}))
}

func giveBackServesTheLine(s *sem) {
	s.create(1)
	g := s.grant(semaphore.Acquire{Holder: "a"})
	w := s.wait(semaphore.Acquire{Holder: "b"})
	s.backend.GiveBack(s.key, g)
	s.grows(g, w.granted())
	s.books(1, 0, 0)
}

func giveBackOfAWaitersGrant(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	w := s.wait(semaphore.Acquire{Holder: "b"})
	equal(s, "release", s.release("a"), 1)
	s.backend.GiveBack(s.key, w.granted())
	s.booksSoon(0, 1, 0)
}

func giveBackTwiceFreesOnce(s *sem) {
	s.create(2)
	s.grant(semaphore.Acquire{Holder: "other"})
	g := s.grant(semaphore.Acquire{Holder: "a"})
	s.backend.GiveBack(s.key, g)
	s.booksSoon(1, 1, 0)
	s.undeliverable(g)
	s.books(1, 1, 0)
}

func giveBackAfterARepeatDoesNothing(s *sem) {
	s.create(1)
	g := s.grant(semaphore.Acquire{Holder: "a"})
	again := s.grant(semaphore.Acquire{Holder: "a"})
	s.undeliverable(g)
	equal(s, "check", s.check(again), 1)
	s.books(1, 0, 0)
}

func giveBackAfterARenewalDoesNothing(s *sem) {
	s.create(1)
	g := s.grant(semaphore.Acquire{Holder: "a"})
	equal(s, "renew", s.renew("a", long), long.Milliseconds())
	s.undeliverable(g)
	equal(s, "check", s.check(g), 1)
	s.books(1, 0, 0)
}

func giveBackOfAnEarlierGrantDoesNothing(s *sem) {
	s.create(1)
	old := s.grant(semaphore.Acquire{Holder: "a"})
	equal(s, "release", s.release("a"), 1)
	now := s.grant(semaphore.Acquire{Holder: "a"})
	s.undeliverable(old)
	equal(s, "check", s.check(now), 1)

	fresh := s.grant(semaphore.Acquire{Holder: "a", Fresh: true})
	s.undeliverable(now)
	equal(s, "check", s.check(fresh), 1)
	s.books(1, 0, 0)
}

func giveBackGoesByTicket(s *sem) {
	s.create(1)
	g := s.grant(semaphore.Acquire{Holder: "a"})
	if g.Ticket == (semaphore.Ticket{}) {
		s.Fatal("ticket: got none, want that of the request")
	}
	forged := *g
	forged.Ticket.Number++
	s.undeliverable(&forged)
	equal(s, "check", s.check(g), 1)
	s.books(1, 0, 0)
}
