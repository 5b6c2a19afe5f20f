package semtest

import (
	"sync"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// createCases are about how a semaphore comes to be.
func createCases() []testCase {
	return []testCase{
		{"CreateAgainChangesNothing", createAgainChangesNothing},
		{"CreateComparesWhatIsGiven", createComparesWhatIsGiven},
		{"CreateByManyAtOnce", createByManyAtOnce},
		{"AcquireCreates", acquireCreates},
		{"AcquiredSemaphoreIsTemporaryUntilCreated", acquiredSemaphoreIsTemporaryUntilCreated},
		{"UnknownSemaphoreIsNamedAsSuch", unknownSemaphoreIsNamedAsSuch},
		{"MinTokenIsAFloor", minTokenIsAFloor},
	}
}

func createAgainChangesNothing(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	s.create(1)
	s.none(semaphore.Acquire{Holder: "b"})
	s.refused(semaphore.CodeConflict, semaphore.Create{Key: s.key, Capacity: 99})
	s.refused(semaphore.CodeConflict, semaphore.Create{Key: s.key, Capacity: 0})
	s.books(1, 0, 0)
}

func createComparesWhatIsGiven(s *sem) {
	settings := semaphore.Settings{Lease: semaphore.Set(4 * time.Second), MaxHold: semaphore.Set(time.Minute)}
	s.create(3, settings)
	s.create(3)
	s.create(3, settings)
	s.create(3, semaphore.Settings{Lease: settings.Lease})
	for _, other := range []semaphore.Settings{
		{Lease: semaphore.Set(5 * time.Second)},
		{MaxLease: semaphore.Set(5 * time.Second)},
		{Quarantine: semaphore.Set(time.Second)},
		{Idle: semaphore.Set(time.Hour)},
	} {
		s.refused(semaphore.CodeConflict, semaphore.Create{Key: s.key, Capacity: 3, Settings: other})
		s.confirmed(semaphore.Create{Key: s.key, Capacity: 9, Settings: other, IfAbsent: true})
	}
	i := s.info()
	equal(s, "capacity", i.Capacity, 3)
	equal(s, "settings", i.Settings, settings)
}

func createByManyAtOnce(s *sem) {
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { s.do(semaphore.Create{Key: s.key, Capacity: 4}) })
	}
	all.Wait()
	s.books(0, 4, 0)
}

func acquireCreates(s *sem) {
	s.refused(semaphore.CodeNoSem, s.ask(semaphore.Acquire{Holder: "a"}))
	s.refused(semaphore.CodeTooMany, s.ask(semaphore.Acquire{Holder: "a", Permits: 3, Create: true, Capacity: 2}))
	s.refused(semaphore.CodeNoSem, semaphore.Inspect{Key: s.key})

	s.grant(semaphore.Acquire{Holder: "a", Create: true, Capacity: 2})
	s.grant(semaphore.Acquire{Holder: "b", Create: true, Capacity: 5})
	s.none(semaphore.Acquire{Holder: "c", Create: true, Capacity: 5})
	equal(s, "capacity", s.info().Capacity, 2)
}

func acquiredSemaphoreIsTemporaryUntilCreated(s *sem) {
	s.grant(semaphore.Acquire{Holder: "a", Create: true, Capacity: 2})
	equal(s, "idle", s.info().Settings.Idle, semaphore.Set(semaphore.DefaultLimits().DefaultIdle))
	s.refused(semaphore.CodeConflict, semaphore.Create{Key: s.key, Capacity: 3})
	s.create(2)
	equal(s, "idle", s.info().Settings.Idle, semaphore.Setting{})
	s.books(1, 1, 0)
}

func unknownSemaphoreIsNamedAsSuch(s *sem) {
	for _, r := range []semaphore.Request{
		s.ask(semaphore.Acquire{Holder: "a"}),
		s.ask(semaphore.Acquire{Holder: "a", Wait: long}),
		semaphore.Resize{Key: s.key, Capacity: 3},
		semaphore.Inspect{Key: s.key},
		semaphore.Holders{Key: s.key, Count: 1},
		semaphore.Waiters{Key: s.key, Count: 1},
		semaphore.Reconcile{Key: s.key},
	} {
		s.refused(semaphore.CodeNoSem, r)
	}
	equal(s, "release", s.release("a"), 0)
	equal(s, "renew", s.renew("a", long), 0)
	equal(s, "cancel", s.cancel("a"), 0)
	equal(s, "check", s.check(&semaphore.Grant{Holder: "a", Token: 1}), 0)
	equal(s, "delete", s.number(semaphore.Delete{Key: s.key}), 0)
	s.refused(semaphore.CodeNoSem, semaphore.Inspect{Key: s.key})
}

func minTokenIsAFloor(s *sem) {
	floor := time.Now().Add(10 * time.Minute).UnixMicro()
	s.confirmed(semaphore.Create{Key: s.key, Capacity: 2, MinToken: floor})
	first := s.grant(semaphore.Acquire{Holder: "a"})
	if first.Token <= floor {
		s.Fatalf("token: got %d, want more than %d", first.Token, floor)
	}
	s.grows(first, s.grant(semaphore.Acquire{Holder: "b"}))
}
