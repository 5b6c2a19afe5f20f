package semtest

import (
	"fmt"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// orderCases are about who is served when.
func orderCases() []testCase {
	return []testCase{
		{"FirstComeFirstServed", firstComeFirstServed},
		{"OneReleaseServesAsManyAsFit", oneReleaseServesAsManyAsFit},
		{"SmallRequestsDoNotOvertake", smallRequestsDoNotOvertake},
		{"TimeoutOfTheHeadServesTheNext", timeoutOfTheHeadServesTheNext},
		{"GrowServesTheLine", growServesTheLine},
		{"CapacityZeroIsAPause", capacityZeroIsAPause},
		{"ShrinkRefusesWhoCannotFitAnyMore", shrinkRefusesWhoCannotFitAnyMore},
	}
}

// line puts n waiters in line, one permit each.
func (s *sem) line(n int) []*waiter {
	s.Helper()
	line := make([]*waiter, n)
	for i := range line {
		line[i] = s.wait(semaphore.Acquire{Holder: fmt.Sprint("w", i)})
	}
	return line
}

// unansweredAll checks that none of them has been answered.
func unansweredAll(line []*waiter) {
	for _, w := range line {
		w.s.Helper()
		w.unanswered()
	}
}

func firstComeFirstServed(s *sem) {
	s.create(1)
	last := s.grant(semaphore.Acquire{Holder: "a"})
	line := s.line(25)
	for i, w := range line {
		equal(s, "release", s.release(last.Holder), 1)
		g := w.granted()
		s.grows(last, g)
		s.books(1, 0, int64(len(line)-1-i))
		unansweredAll(line[i+1:])
		last = g
	}
}

func oneReleaseServesAsManyAsFit(s *sem) {
	s.create(4)
	s.grant(semaphore.Acquire{Holder: "one"})
	s.grant(semaphore.Acquire{Holder: "three", Permits: 3})
	line := s.line(50)
	equal(s, "release", s.release("one"), 1)
	line[0].granted()
	s.books(4, 0, 49)
	unansweredAll(line[1:])
	equal(s, "release", s.release("three"), 1)
	for _, w := range line[1:4] {
		w.granted()
	}
	s.books(4, 0, 46)
	unansweredAll(line[4:])
}

func smallRequestsDoNotOvertake(s *sem) {
	s.create(3)
	for _, holder := range []string{"x", "y", "z"} {
		s.grant(semaphore.Acquire{Holder: holder})
	}
	big := s.wait(semaphore.Acquire{Holder: "big", Permits: 3})
	small := s.wait(semaphore.Acquire{Holder: "small"})

	equal(s, "release", s.release("x"), 1)
	equal(s, "release", s.release("y"), 1)
	s.none(semaphore.Acquire{Holder: "pusher"})
	s.books(1, 2, 2)
	equal(s, "release", s.release("z"), 1)
	big.granted()
	small.unanswered()
	s.books(3, 0, 1)
	equal(s, "release", s.release("big"), 1)
	small.granted()
	s.books(1, 2, 0)
}

func timeoutOfTheHeadServesTheNext(s *sem) {
	s.create(2)
	s.grant(semaphore.Acquire{Holder: "a"})
	began := time.Now()
	big := s.wait(semaphore.Acquire{Holder: "big", Permits: 2, Wait: 150 * time.Millisecond})
	small := s.wait(semaphore.Acquire{Holder: "small"})
	small.granted()
	s.notBefore(began, 150*time.Millisecond)
	big.none()
	s.books(2, 0, 0)
}

func growServesTheLine(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	line := s.line(3)
	equal(s, "usage", s.resize(3), semaphore.Usage{Capacity: 3, InUse: 3, Available: 0})
	equal(s, "slot of the first", line[0].granted().Slot(), 1)
	equal(s, "slot of the second", line[1].granted().Slot(), 2)
	line[2].unanswered()
	s.books(3, 0, 1)
}

func capacityZeroIsAPause(s *sem) {
	s.create(0)
	s.none(semaphore.Acquire{Holder: "a", Permits: 2})
	began := time.Now()
	s.wait(semaphore.Acquire{Holder: "brief", Wait: 100 * time.Millisecond}).none()
	s.notBefore(began, 100*time.Millisecond)
	w := s.wait(semaphore.Acquire{Holder: "w", Permits: 2})
	s.books(0, 0, 1)

	s.resize(2)
	w.granted()
	behind := s.wait(semaphore.Acquire{Holder: "behind", Permits: 2})
	equal(s, "usage while paused", s.resize(0), semaphore.Usage{Capacity: 0, InUse: 2, Available: 0})
	equal(s, "release while paused", s.release("w"), 1)
	behind.unanswered()
	s.books(0, 0, 1)
	s.resize(2)
	behind.granted()
}

func shrinkRefusesWhoCannotFitAnyMore(s *sem) {
	s.create(4)
	s.grant(semaphore.Acquire{Holder: "a", Permits: 2})
	big := s.wait(semaphore.Acquire{Holder: "big", Permits: 4})
	small := s.wait(semaphore.Acquire{Holder: "small"})
	s.resize(3)
	big.refused(semaphore.CodeTooMany)
	small.granted() // the one before it had kept it back
	s.books(3, 0, 0)
}
