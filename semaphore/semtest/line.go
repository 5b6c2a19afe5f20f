package semtest

import (
	"fmt"
	"sync"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// lineCases are about joining the line and leaving it.
func lineCases() []testCase {
	return []testCase{
		{"NoWaitMeansNowOrNone", noWaitMeansNowOrNone},
		{"WaitEndsWithNone", waitEndsWithNone},
		{"TimedOutWaiterLeavesNothingBehind", timedOutWaiterLeavesNothingBehind},
		{"WaitAndReleaseInTheSameInstant", waitAndReleaseInTheSameInstant},
		{"CancelLeavesTheLine", cancelLeavesTheLine},
		{"LeaveLeavesTheLine", leaveLeavesTheLine},
		{"LeaveAfterTheGrantChangesNothing", leaveAfterTheGrantChangesNothing},
		{"LeaveRacesWithTheGrant", leaveRacesWithTheGrant},
	}
}

// aloneCases must not share the process with others.
func aloneCases() []testCase {
	return []testCase{
		{"TenThousandWaitsLeaveNothingBehind", tenThousandWaitsLeaveNothingBehind},
	}
}

func noWaitMeansNowOrNone(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	s.none(semaphore.Acquire{Holder: "b"})
	s.books(1, 0, 0)
	equal(s, "refused", s.info().Counters.Refused, 1)
}

func waitEndsWithNone(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	for _, wait := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond} {
		began := time.Now()
		w := s.wait(semaphore.Acquire{Holder: "b", Wait: wait})
		w.none()
		s.notBefore(began, wait)
		w.Leave() // too late to mean anything
		w.unanswered()
		s.books(1, 0, 0)
	}
	equal(s, "wait timeouts", s.info().Counters.WaitTimeouts, 3)
}

func timedOutWaiterLeavesNothingBehind(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	gone := s.wait(semaphore.Acquire{Holder: "b", Wait: 30 * time.Millisecond})
	next := s.wait(semaphore.Acquire{Holder: "c"})
	gone.none()
	equal(s, "release", s.release("a"), 1)
	next.granted()
	gone.unanswered()
	s.books(1, 0, 0)
}

// waitAndReleaseInTheSameInstant checks that a wait ends either with the permit or without it, and
// that the books agree with what the waiter was told.
func waitAndReleaseInTheSameInstant(s *sem) {
	s.create(1)
	for round := range 60 {
		wait := 20 * time.Millisecond
		s.grant(semaphore.Acquire{Holder: "a"})
		w := s.wait(semaphore.Acquire{Holder: "b", Wait: wait})
		<-time.After(wait + time.Duration(round-30)*100*time.Microsecond)
		equal(s, "release", s.release("a"), 1)
		s.settled(w)
	}
}

// settled checks that the books agree with the outcome of a wait for the only permit, and frees it.
func (s *sem) settled(w *waiter) {
	s.Helper()
	reply := w.outcome()
	if reply.Err != nil {
		s.Fatalf("got %v, want a grant or none", reply.Err)
	}
	held := int64(0)
	if reply.Value != nil {
		s.granted(reply, w.request)
		held = 1
	}
	s.books(held, 1-held, 0)
	equal(s, "release after the race", s.release(w.request.Holder), held)
	s.books(0, 1, 0)
}

func cancelLeavesTheLine(s *sem) {
	s.create(3)
	s.grant(semaphore.Acquire{Holder: "a", Permits: 2})
	big := s.wait(semaphore.Acquire{Holder: "big", Permits: 3})
	small := s.wait(semaphore.Acquire{Holder: "small"})
	s.books(2, 1, 2)

	equal(s, "cancel", s.cancel("big"), 1)
	big.none()
	small.granted() // it had only been kept back by the one before it
	for _, holder := range []string{"big", "small", "a", "nobody"} {
		equal(s, "cancel of who does not wait", s.cancel(holder), 0)
	}
	s.books(3, 0, 0)
}

func leaveLeavesTheLine(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	w := s.wait(semaphore.Acquire{Holder: "b"})
	var all sync.WaitGroup
	for range 3 {
		all.Go(w.Leave)
	}
	all.Wait()
	w.none()
	s.books(1, 0, 0)
	equal(s, "release", s.release("a"), 1)
	s.books(0, 1, 0)
	w.unanswered()
}

func leaveAfterTheGrantChangesNothing(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	w := s.wait(semaphore.Acquire{Holder: "b"})
	equal(s, "release", s.release("a"), 1)
	g := w.granted()
	w.Leave()
	w.Leave()
	s.pass(50 * time.Millisecond)
	equal(s, "check", s.check(g), 1)
	w.unanswered()
}

func leaveRacesWithTheGrant(s *sem) {
	s.create(1)
	for round := range 200 {
		s.grant(semaphore.Acquire{Holder: "a"})
		w := s.wait(semaphore.Acquire{Holder: fmt.Sprint("b", round)})
		var racers sync.WaitGroup
		racers.Go(w.Leave)
		racers.Go(func() { equal(s, "release", s.release("a"), 1) })
		racers.Wait()
		s.settled(w)
	}
}
