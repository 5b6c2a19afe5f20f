package semtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// fencingCases are about tokens and slots.
func fencingCases() []testCase {
	return []testCase{
		{"TokensGrowWithEveryGrant", tokensGrowWithEveryGrant},
		{"PermitsTakeTheLowestFreeSlots", permitsTakeTheLowestFreeSlots},
		{"CheckTellsLiveFromStale", checkTellsLiveFromStale},
		{"PausedHolderIsFenced", pausedHolderIsFenced},
	}
}

// grows checks that a later grant has the larger token.
func (s *sem) grows(earlier, later *semaphore.Grant) {
	s.Helper()
	if later.Token <= earlier.Token {
		s.Fatalf("token: got %d, want more than %d", later.Token, earlier.Token)
	}
}

func tokensGrowWithEveryGrant(s *sem) {
	s.create(3)
	began := time.Now().UnixMicro()
	last := s.grant(semaphore.Acquire{Holder: "first"})
	if last.Token < began-time.Hour.Microseconds() {
		s.Fatalf("token: got %d, want microseconds since 1970, about %d", last.Token, began)
	}
	for i := range 200 {
		g := s.grant(semaphore.Acquire{Holder: fmt.Sprint(i)})
		s.grows(last, g)
		equal(s, "last token", s.info().LastToken, g.Token)
		equal(s, "release", s.release(g.Holder), 1)
		last = g
	}
}

func permitsTakeTheLowestFreeSlots(s *sem) {
	s.create(6)
	for _, holder := range []string{"a", "b", "c"} {
		s.grant(semaphore.Acquire{Holder: holder})
	}
	equal(s, "release", s.release("b"), 1)
	many := s.grant(semaphore.Acquire{Holder: "many", Permits: 3})
	want := []semaphore.Range{{First: 1, Last: 1}, {First: 3, Last: 4}}
	if !slices.Equal(many.Slots, want) {
		s.Fatalf("slots: got %v, want %v", many.Slots, want)
	}
	equal(s, "release", s.release("a"), 1)
	equal(s, "slot", s.grant(semaphore.Acquire{Holder: "d"}).Slot(), 0)
	equal(s, "slot", s.grant(semaphore.Acquire{Holder: "e"}).Slot(), 5)
	equal(s, "release", s.release("many"), 1)
	if got := s.grant(semaphore.Acquire{Holder: "again", Permits: 3}).Slots; !slices.Equal(got, want) {
		s.Fatalf("slots: got %v, want %v", got, want)
	}
}

func checkTellsLiveFromStale(s *sem) {
	s.create(2)
	began := time.Now()
	g := s.grant(semaphore.Acquire{Holder: "a", Lease: 2 * time.Second})
	equal(s, "check", s.check(g), 1)
	equal(s, "check of another token", s.check(&semaphore.Grant{Holder: "a", Token: g.Token + 1}), 0)
	equal(s, "check of another holder", s.check(&semaphore.Grant{Holder: "b", Token: g.Token}), 0)
	s.lapses(g, began, 2*time.Second)

	released := s.grant(semaphore.Acquire{Holder: "a"})
	equal(s, "release", s.release("a"), 1)
	equal(s, "check after the release", s.check(released), 0)
}

// resource is guarded as the fencing rule says: one row per slot, and a write passes when each of its
// rows has seen no larger token.
type resource map[int64]int64

func (r resource) write(g *semaphore.Grant) bool {
	for _, run := range g.Slots {
		for slot := run.First; slot <= run.Last; slot++ {
			if r[slot] > g.Token {
				return false
			}
		}
	}
	for _, run := range g.Slots {
		for slot := run.First; slot <= run.Last; slot++ {
			r[slot] = g.Token
		}
	}
	return true
}

func pausedHolderIsFenced(s *sem) {
	s.create(3)
	rows := resource{}
	began := time.Now()
	paused := s.grant(semaphore.Acquire{Holder: "paused", Lease: 150 * time.Millisecond})
	equal(s, "write of a live holder", rows.write(paused), true)
	other := s.grant(semaphore.Acquire{Holder: "other"})
	s.lapses(paused, began, 150*time.Millisecond)

	fresh := s.grant(semaphore.Acquire{Holder: "fresh", Permits: 2})
	equal(s, "write of the successor", rows.write(fresh), true)
	equal(s, "write of an older live holder", rows.write(other), true)
	equal(s, "write of the ended holder", rows.write(paused), false)
}
