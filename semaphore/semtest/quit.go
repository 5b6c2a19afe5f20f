package semtest

import (
	"fmt"
	"sync"

	"github.com/semserver/semserver/semaphore"
)

// quitCases are about waits that end because their server stops. Whether the place is kept is the
// engine's choice; that a repeat gets what the first request did not is not.
func quitCases() []testCase {
	return []testCase{
		{"WhoQuitMayComeBack", whoQuitMayComeBack},
		{"QuitAfterTheGrantChangesNothing", quitAfterTheGrantChangesNothing},
		{"QuitRacesWithTheGrant", quitRacesWithTheGrant},
	}
}

// quit ends a wait as a server does that stops.
func (w *waiter) quit() {
	if w.Quit == nil {
		w.Leave()
		return
	}
	w.Quit()
}

// ended returns the grant that came before the wait was ended, or nil.
func (w *waiter) ended() *semaphore.Grant {
	w.s.Helper()
	reply := w.outcome()
	switch {
	case reply.Value != nil:
		return w.s.granted(reply, w.request)
	case reply.Err != nil:
		w.s.refusal(semaphore.CodeShutdown, reply)
	}
	return nil
}

func whoQuitMayComeBack(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	first := s.wait(semaphore.Acquire{Holder: "b"})
	first.quit()
	first.quit()
	if g := first.ended(); g != nil {
		s.Fatalf("got %+v while another held, want none", g)
	}
	again := s.wait(semaphore.Acquire{Holder: "b"})
	s.books(1, 0, 1)
	equal(s, "release", s.release("a"), 1)
	g := again.granted()
	equal(s, "check", s.check(g), 1)
	s.books(1, 0, 0)
	first.unanswered()
	again.unanswered()
}

func quitAfterTheGrantChangesNothing(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	w := s.wait(semaphore.Acquire{Holder: "b"})
	equal(s, "release", s.release("a"), 1)
	g := w.granted()
	w.quit()
	equal(s, "check", s.check(g), 1)
	s.books(1, 0, 0)
	w.unanswered()
}

func quitRacesWithTheGrant(s *sem) {
	s.create(1)
	for round := range 100 {
		s.grant(semaphore.Acquire{Holder: "a"})
		holder := fmt.Sprint("b", round)
		w := s.wait(semaphore.Acquire{Holder: holder})
		var racers sync.WaitGroup
		racers.Go(w.quit)
		racers.Go(func() { equal(s, "release", s.release("a"), 1) })
		racers.Wait()
		if w.ended() == nil {
			s.grantInTime(semaphore.Acquire{Holder: holder})
		}
		s.books(1, 0, 0)
		equal(s, "release after the race", s.release(holder), 1)
		s.books(0, 1, 0)
	}
}

// grantInTime carries out an Acquire that is granted at once or after a wait.
func (s *sem) grantInTime(r semaphore.Acquire) {
	s.Helper()
	r.Wait = long
	reply := s.do(s.ask(r))
	if line, ok := reply.Value.(*semaphore.Waiting); ok {
		reply = <-line.Done
	}
	s.granted(reply, s.ask(r))
}
