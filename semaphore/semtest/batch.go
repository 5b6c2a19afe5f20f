package semtest

import (
	"fmt"

	"github.com/semserver/semserver/semaphore"
)

// batchCases are about several requests in one call.
func batchCases() []testCase {
	return []testCase{
		{"BatchIsAnsweredInOrder", batchIsAnsweredInOrder},
		{"LargeBatchIsAnsweredInOrder", largeBatchIsAnsweredInOrder},
		{"LastOfABatchMayWait", lastOfABatchMayWait},
		{"BatchSpansSemaphores", batchSpansSemaphores},
		{"EngineKeepsNeitherSlice", engineKeepsNeitherSlice},
	}
}

func batchIsAnsweredInOrder(s *sem) {
	replies := s.backend.Do([]semaphore.Request{
		semaphore.Release{Key: s.key, Holder: "a"},
		s.ask(semaphore.Acquire{Holder: "a"}),
		semaphore.Create{Key: s.key, Capacity: 1},
		s.ask(semaphore.Acquire{Holder: "a"}),
		s.ask(semaphore.Acquire{Holder: "b"}),
		semaphore.Create{Key: s.key, Capacity: 2},
		semaphore.Release{Key: s.key, Holder: "a"},
		s.ask(semaphore.Acquire{Holder: "b"}),
		semaphore.Inspect{Key: s.key},
	})
	equal(s, "replies", len(replies), 9)
	equal(s, "release of an unknown semaphore", replies[0].Value, any(semaphore.Number(0)))
	s.refusal(semaphore.CodeNoSem, replies[1])
	equal(s, "create", replies[2], semaphore.Reply{})
	a := s.granted(replies[3], s.ask(semaphore.Acquire{Holder: "a"}))
	equal(s, "acquire when full", replies[4], semaphore.Reply{})
	s.refusal(semaphore.CodeConflict, replies[5]) // and undoes nothing before it
	equal(s, "release", replies[6].Value, any(semaphore.Number(1)))
	s.grows(a, s.granted(replies[7], s.ask(semaphore.Acquire{Holder: "b"})))
	i, ok := replies[8].Value.(*semaphore.Info)
	if !ok {
		s.Fatalf("inspect got %v, %v, want an Info", replies[8].Value, replies[8].Err)
	}
	equal(s, "in use", i.InUse, 1)
	equal(s, "capacity", i.Capacity, 1)
}

func largeBatchIsAnsweredInOrder(s *sem) {
	s.create(1)
	const pairs = 600
	var run []semaphore.Request
	for i := range pairs {
		run = append(run, s.ask(semaphore.Acquire{Holder: fmt.Sprint(i)}), semaphore.Release{Key: s.key, Holder: fmt.Sprint(i)})
	}
	replies := s.backend.Do(run)
	equal(s, "replies", len(replies), 2*pairs)
	for i := range pairs {
		s.granted(replies[2*i], run[2*i].(semaphore.Acquire))
		equal(s, "release", replies[2*i+1].Value, any(semaphore.Number(1)))
	}
	s.books(0, 1, 0)
}

func lastOfABatchMayWait(s *sem) {
	s.create(1)
	a, b := s.ask(semaphore.Acquire{Holder: "a"}), s.ask(semaphore.Acquire{Holder: "b", Wait: long})
	replies := s.backend.Do([]semaphore.Request{a, b})
	equal(s, "replies", len(replies), 2)
	s.granted(replies[0], a)
	w := s.inLine(replies[1], b)
	s.books(1, 0, 1)
	equal(s, "release", s.release("a"), 1)
	w.granted()
}

func batchSpansSemaphores(s *sem) {
	other := s.beside("other")
	replies := s.backend.Do([]semaphore.Request{
		semaphore.Create{Key: s.key, Capacity: 1},
		semaphore.Create{Key: other.key, Capacity: 2},
		s.ask(semaphore.Acquire{Holder: "a"}),
		other.ask(semaphore.Acquire{Holder: "a", Permits: 2}),
	})
	equal(s, "replies", len(replies), 4)
	s.granted(replies[2], s.ask(semaphore.Acquire{Holder: "a"}))
	other.granted(replies[3], other.ask(semaphore.Acquire{Holder: "a", Permits: 2}))
	s.books(1, 0, 0)
	other.books(2, 0, 0)
}

func engineKeepsNeitherSlice(s *sem) {
	s.create(1)
	a, b := s.ask(semaphore.Acquire{Holder: "a"}), s.ask(semaphore.Acquire{Holder: "b", Wait: long})
	run := []semaphore.Request{a, b}
	replies := s.backend.Do(run)
	w := s.inLine(replies[1], b)
	clear(run)
	clear(replies)
	equal(s, "release", s.release("a"), 1)
	w.granted()
	s.books(1, 0, 0)
}
