package semtest

import (
	"fmt"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
)

// leaseCases are about how long a grant lasts.
func leaseCases() []testCase {
	return []testCase{
		{"EndedLeaseIsOver", endedLeaseIsOver},
		{"EndedLeaseServesTheLineWithoutTraffic", endedLeaseServesTheLineWithoutTraffic},
		{"LeaseStartsAtTheGrant", leaseStartsAtTheGrant},
		{"EachLeaseByItself", eachLeaseByItself},
		{"RenewSetsTheLeaseFromNow", renewSetsTheLeaseFromNow},
		{"RenewedLeaseLasts", renewedLeaseLasts},
		{"RenewWithoutLeaseRepeatsTheLast", renewWithoutLeaseRepeatsTheLast},
		{"PersistNeverExpires", persistNeverExpires},
		{"LeaseComesFromTheSemaphoreOrTheDefault", leaseComesFromTheSemaphoreOrTheDefault},
		{"ThousandsOfLeasesEndTogether", thousandsOfLeasesEndTogether},
		{"QuarantineKeepsExpiredPermitsOut", quarantineKeepsExpiredPermitsOut},
		{"QuarantineEnds", quarantineEnds},
		{"UnusedSemaphoreIsRemoved", unusedSemaphoreIsRemoved},
	}
}

func endedLeaseIsOver(s *sem) {
	s.create(3)
	began := time.Now()
	g := s.grant(semaphore.Acquire{Holder: "a", Lease: 100 * time.Millisecond})
	s.lapses(g, began, 100*time.Millisecond)

	equal(s, "release", s.release("a"), 0)
	equal(s, "renew", s.renew("a", long), 0)
	equal(s, "renew for ever", s.renew("a", semaphore.Persist), 0)
	s.books(0, 3, 0)
	for i := range 3 {
		s.grant(semaphore.Acquire{Holder: fmt.Sprint(i)})
	}
	s.none(semaphore.Acquire{Holder: "3"})
	equal(s, "expirations", s.info().Counters.Expirations, 1)
}

func endedLeaseServesTheLineWithoutTraffic(s *sem) {
	s.create(1)
	began := time.Now()
	old := s.grant(semaphore.Acquire{Holder: "a", Lease: 150 * time.Millisecond})
	next := s.wait(semaphore.Acquire{Holder: "b"}).granted()
	s.notBefore(began, 150*time.Millisecond)
	s.grows(old, next)
	equal(s, "check of the ended grant", s.check(old), 0)
	equal(s, "slot", next.Slot(), old.Slot())
}

func leaseStartsAtTheGrant(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	w := s.wait(semaphore.Acquire{Holder: "b", Lease: 300 * time.Millisecond})
	s.pass(200 * time.Millisecond)
	began := time.Now()
	equal(s, "release", s.release("a"), 1)
	s.lapses(w.granted(), began, 300*time.Millisecond)
}

func eachLeaseByItself(s *sem) {
	s.create(2)
	began := time.Now()
	lasting := s.grant(semaphore.Acquire{Holder: "lasting", Lease: long})
	brief := s.grant(semaphore.Acquire{Holder: "brief", Lease: 80 * time.Millisecond})
	s.lapses(brief, began, 80*time.Millisecond)
	equal(s, "check of the other", s.check(lasting), 1)
	s.books(1, 1, 0)
}

func renewSetsTheLeaseFromNow(s *sem) {
	s.create(1)
	g := s.grant(semaphore.Acquire{Holder: "a", Lease: long})
	s.pass(100 * time.Millisecond)
	began := time.Now()
	equal(s, "renew", s.renew("a", 200*time.Millisecond), 200)
	s.lapses(g, began, 200*time.Millisecond)
}

func renewedLeaseLasts(s *sem) {
	s.create(1)
	// Until the renewal the lease must outlast a stall of the machine; afterwards it need not.
	g := s.grant(semaphore.Acquire{Holder: "a", Lease: 2 * time.Second})
	equal(s, "renew", s.renew("a", long), long.Milliseconds())
	equal(s, "renew of another holder", s.renew("b", long), 0)
	s.pass(2100 * time.Millisecond)
	equal(s, "check after the first lease", s.check(g), 1)
	equal(s, "renewals", s.info().Counters.Renewals, 1)
}

func renewWithoutLeaseRepeatsTheLast(s *sem) {
	s.create(2, semaphore.Settings{Lease: semaphore.Set(30 * time.Second)})
	s.grant(semaphore.Acquire{Holder: "a", Lease: 200 * time.Second})
	equal(s, "renew as granted", s.renew("a", 0), 200_000)
	equal(s, "renew by name", s.renew("a", 80*time.Second), 80_000)
	equal(s, "renew as renewed", s.renew("a", 0), 80_000)
	s.grant(semaphore.Acquire{Holder: "b"})
	equal(s, "renew where none was given", s.renew("b", 0), 30_000)
}

func persistNeverExpires(s *sem) {
	s.create(1)
	g := s.grant(semaphore.Acquire{Holder: "a", Lease: semaphore.Persist})
	equal(s, "lease", g.Lease, semaphore.Persist)
	equal(s, "next expiry", s.info().NextExpiry, semaphore.Setting{})
	equal(s, "renew with a lease", s.renew("a", 200*time.Second), 200_000)
	equal(s, "renew for ever", s.renew("a", semaphore.Persist), -1)
	equal(s, "lease of a repeat", s.grant(semaphore.Acquire{Holder: "a"}).Lease, semaphore.Persist)
	equal(s, "release", s.release("a"), 1)
}

func leaseComesFromTheSemaphoreOrTheDefault(s *sem) {
	s.create(1)
	fallback := semaphore.DefaultLimits().DefaultLease
	g := s.grant(semaphore.Acquire{Holder: "a"})
	if g.Lease > fallback || g.Lease < fallback-patience {
		s.Fatalf("lease: got %v, want the default %v", g.Lease, fallback)
	}
	own := s.beside("own")
	own.create(1, semaphore.Settings{Lease: semaphore.Set(100 * time.Millisecond)})
	began := time.Now()
	own.lapses(own.grant(semaphore.Acquire{Holder: "a"}), began, 100*time.Millisecond)
}

// thousandsOfLeasesEndTogether checks that whatever an engine does in portions, no answer shows it.
func thousandsOfLeasesEndTogether(s *sem) {
	const batches, each = 10, 500
	s.create(batches*each + 1)
	s.grant(semaphore.Acquire{Holder: "lasting", Lease: long})
	began := time.Now()
	for b := range batches {
		run := make([]semaphore.Request, each)
		for i := range run {
			run[i] = s.ask(semaphore.Acquire{Holder: fmt.Sprint(b, "-", i), Lease: 1500 * time.Millisecond})
		}
		for i, reply := range s.backend.Do(run) {
			s.granted(reply, run[i].(semaphore.Acquire))
		}
	}
	var all []*waiter
	for left := int64(batches * each); left > 0; left -= s.bounds.Permits {
		all = append(all, s.wait(semaphore.Acquire{Holder: fmt.Sprint("all but ", left), Permits: min(left, s.bounds.Permits)}))
	}
	for _, w := range all {
		w.granted()
	}
	s.notBefore(began, 1500*time.Millisecond)
	s.books(batches*each+1, 0, 0)
	equal(s, "expirations", s.info().Counters.Expirations, batches*each)
	equal(s, "reconcile", s.number(semaphore.Reconcile{Key: s.key}), 0)
}

func quarantineKeepsExpiredPermitsOut(s *sem) {
	s.create(2, semaphore.Settings{Quarantine: semaphore.Set(long)})
	began := time.Now()
	old := s.grant(semaphore.Acquire{Holder: "a", Lease: 80 * time.Millisecond})
	s.lapses(old, began, 80*time.Millisecond)

	equal(s, "release", s.release("a"), 0)
	equal(s, "quarantined", s.info().Quarantined, 1)
	s.books(0, 1, 0)
	g := s.grant(semaphore.Acquire{Holder: "b"})
	equal(s, "slot beside the quarantined one", g.Slot(), 1)
	s.none(semaphore.Acquire{Holder: "c"})
	equal(s, "release of a live grant", s.release("b"), 1)
	equal(s, "slot of a released permit", s.grant(semaphore.Acquire{Holder: "c"}).Slot(), 1)
	equal(s, "release", s.release("c"), 1)
	equal(s, "delete minds holders, not quarantine", s.number(semaphore.Delete{Key: s.key}), 1)
}

func quarantineEnds(s *sem) {
	s.create(1, semaphore.Settings{Quarantine: semaphore.Set(200 * time.Millisecond)})
	began := time.Now()
	s.grant(semaphore.Acquire{Holder: "a", Lease: 100 * time.Millisecond})
	g := s.wait(semaphore.Acquire{Holder: "b"}).granted()
	s.notBefore(began, 300*time.Millisecond)
	equal(s, "slot", g.Slot(), 0)
	equal(s, "quarantined", s.info().Quarantined, 0)
}

func unusedSemaphoreIsRemoved(s *sem) {
	const idle = 150 * time.Millisecond
	s.create(1, semaphore.Settings{Idle: semaphore.Set(idle)})
	g := s.grant(semaphore.Acquire{Holder: "a", Lease: long})
	s.pass(2 * idle)
	s.books(1, 0, 0)

	began := time.Now()
	equal(s, "release", s.release("a"), 1)
	trial.Await(s, func() error {
		if s.do(semaphore.Inspect{Key: s.key}).Err == nil {
			return fmt.Errorf("still there %v after its last use", time.Since(began))
		}
		return nil
	})
	s.notBefore(began, idle)
	s.refused(semaphore.CodeNoSem, s.ask(semaphore.Acquire{Holder: "a"}))
	s.create(1)
	s.grows(g, s.grant(semaphore.Acquire{Holder: "a"}))
}
