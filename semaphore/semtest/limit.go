package semtest

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// limitCases are about what a semaphore's settings allow.
func limitCases() []testCase {
	return []testCase{
		{"LeaseAboveMaxLeaseIsRefused", leaseAboveMaxLeaseIsRefused},
		{"MaxLeaseCutsTheDefaultLease", maxLeaseCutsTheDefaultLease},
		{"MaxHoldCutsEveryLease", maxHoldCutsEveryLease},
		{"MaxHoldExcludesPersist", maxHoldExcludesPersist},
		{"ContradictorySettingsAreRefused", contradictorySettingsAreRefused},
		{"ResizeChangesSettingsForLaterGrants", resizeChangesSettingsForLaterGrants},
	}
}

func leaseAboveMaxLeaseIsRefused(s *sem) {
	const most = 100 * time.Second
	s.create(2, semaphore.Settings{MaxLease: semaphore.Set(most)})
	for _, lease := range []time.Duration{most + time.Millisecond, semaphore.Persist} {
		s.refused(semaphore.CodeInvalid, s.ask(semaphore.Acquire{Holder: "a", Lease: lease}))
		s.refused(semaphore.CodeInvalid, s.ask(semaphore.Acquire{Holder: "a", Lease: lease, Wait: long}))
	}
	s.books(0, 2, 0)

	g := s.grant(semaphore.Acquire{Holder: "a", Lease: most})
	for _, lease := range []time.Duration{most + time.Millisecond, semaphore.Persist} {
		s.refused(semaphore.CodeInvalid, semaphore.Renew{Key: s.key, Holder: "a", Lease: lease})
	}
	equal(s, "check", s.check(g), 1)
	equal(s, "renewals", s.info().Counters.Renewals, 0)
}

func maxLeaseCutsTheDefaultLease(s *sem) {
	s.create(1, semaphore.Settings{MaxLease: semaphore.Set(100 * time.Millisecond)})
	began := time.Now()
	s.lapses(s.grant(semaphore.Acquire{Holder: "a"}), began, 100*time.Millisecond)
}

func maxHoldCutsEveryLease(s *sem) {
	const hold = 700 * time.Millisecond
	s.create(1, semaphore.Settings{MaxHold: semaphore.Set(hold)})
	began := time.Now()
	g := s.grant(semaphore.Acquire{Holder: "a", Lease: long})
	if g.Lease > hold {
		s.Fatalf("first lease: got %v, want at most %v", g.Lease, hold)
	}
	s.pass(100 * time.Millisecond)
	// A stalled machine may come too late to renew at all; then the answer is 0, which is right too.
	if left := s.renew("a", long); left > (hold - 100*time.Millisecond).Milliseconds() {
		s.Fatalf("renew: got %d ms, want what is left of %v", left, hold)
	}
	s.lapses(g, began, hold)
	equal(s, "renew at the end", s.renew("a", long), 0)
	s.books(0, 1, 0)
}

func maxHoldExcludesPersist(s *sem) {
	s.create(1, semaphore.Settings{MaxHold: semaphore.Set(long)})
	s.refused(semaphore.CodeInvalid, s.ask(semaphore.Acquire{Holder: "a", Lease: semaphore.Persist}))
	s.grant(semaphore.Acquire{Holder: "a"})
	s.refused(semaphore.CodeInvalid, semaphore.Renew{Key: s.key, Holder: "a", Lease: semaphore.Persist})
	s.books(1, 0, 0)
}

func contradictorySettingsAreRefused(s *sem) {
	contradictory := semaphore.Settings{Lease: semaphore.Set(2 * time.Second), MaxLease: semaphore.Set(time.Second)}
	s.refused(semaphore.CodeInvalid, semaphore.Create{Key: s.key, Capacity: 1, Settings: contradictory})
	s.refused(semaphore.CodeNoSem, semaphore.Inspect{Key: s.key})

	s.create(1, semaphore.Settings{MaxLease: contradictory.MaxLease})
	s.refused(semaphore.CodeInvalid, semaphore.Resize{Key: s.key, Capacity: 5, Settings: semaphore.Settings{Lease: contradictory.Lease}})
	i := s.info()
	equal(s, "capacity", i.Capacity, 1)
	equal(s, "lease", i.Settings.Lease, semaphore.Setting{})
}

func resizeChangesSettingsForLaterGrants(s *sem) {
	s.create(2)
	before := s.grant(semaphore.Acquire{Holder: "before", Lease: 2 * long})
	r := semaphore.Resize{Key: s.key, Capacity: 3, Settings: semaphore.Settings{
		Lease: semaphore.Set(time.Minute), MaxLease: semaphore.Set(long), MaxHold: semaphore.Set(2 * long),
		Quarantine: semaphore.Set(time.Second), Idle: semaphore.Set(long),
	}}
	equal(s, "usage", value[semaphore.Usage](s, r), semaphore.Usage{Capacity: 3, InUse: 1, Available: 2})
	equal(s, "settings", s.info().Settings, r.Settings)
	equal(s, "check of the live grant", s.check(before), 1)
	if g := s.grant(semaphore.Acquire{Holder: "before"}); g.Lease <= long {
		s.Fatalf("live lease: got %v, want it left as it was, above %v", g.Lease, long)
	}
	if g := s.grant(semaphore.Acquire{Holder: "after"}); g.Lease > time.Minute {
		s.Fatalf("later lease: got %v, want at most %v", g.Lease, time.Minute)
	}
	equal(s, "settings of a resize without any", s.resize(4), semaphore.Usage{Capacity: 4, InUse: 2, Available: 2})
	equal(s, "settings", s.info().Settings, r.Settings)
}
