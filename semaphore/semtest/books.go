package semtest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// bookCases are about what can be seen.
func bookCases() []testCase {
	return []testCase{
		{"CountersMoveExactly", countersMoveExactly},
		{"InfoTellsTheState", infoTellsTheState},
		{"HoldersAreListedInPages", holdersAreListedInPages},
		{"WaitersAreListedInLineOrder", waitersAreListedInLineOrder},
		{"ScanSeesEachOnce", scanSeesEachOnce},
		{"RefusalsChangeNothing", refusalsChangeNothing},
	}
}

func countersMoveExactly(s *sem) {
	s.create(1)
	s.grant(semaphore.Acquire{Holder: "a"})
	s.grant(semaphore.Acquire{Holder: "a"}) // a replay is no new grant
	s.none(semaphore.Acquire{Holder: "x"})
	s.wait(semaphore.Acquire{Holder: "y", Wait: 50 * time.Millisecond}).none()
	w := s.wait(semaphore.Acquire{Holder: "w", Lease: 100 * time.Millisecond})
	s.renew("a", long)
	s.renew("nobody", long)
	began := time.Now()
	s.release("a")
	s.release("a")
	s.lapses(w.granted(), began, 100*time.Millisecond)

	got := s.info().Counters
	waited, held := got.WaitTotal, got.HeldTotal
	got.WaitTotal, got.HeldTotal = 0, 0
	equal(s, "counters", got, semaphore.Counters{
		GrantsImmediate: 1, GrantsWaited: 1, Refused: 1, WaitTimeouts: 1, Releases: 1, Renewals: 1, Expirations: 1,
	})
	if waited < 50*time.Millisecond || held < 100*time.Millisecond {
		s.Fatalf("waited %v, held %v in all, want at least 50ms and 100ms", waited, held)
	}
}

func infoTellsTheState(s *sem) {
	settings := semaphore.Settings{Lease: semaphore.Set(time.Minute), Quarantine: semaphore.Set(time.Second)}
	s.create(3, settings)
	i := s.info()
	equal(s, "empty", *i, semaphore.Info{Name: s.key, Usage: semaphore.Usage{Capacity: 3, Available: 3}, Rows: 3,
		LastToken: i.LastToken, Settings: settings})

	s.grant(semaphore.Acquire{Holder: "a", Permits: 2, Lease: long})
	g := s.grant(semaphore.Acquire{Holder: "b", Lease: 2 * long})
	s.wait(semaphore.Acquire{Holder: "c"})
	s.wait(semaphore.Acquire{Holder: "d"})
	s.pass(20 * time.Millisecond)
	i = s.info()
	equal(s, "usage", i.Usage, semaphore.Usage{Capacity: 3, InUse: 3, Available: 0})
	equal(s, "holders", i.Holders, 2)
	equal(s, "waiters", i.Waiters, 2)
	equal(s, "last token", i.LastToken, g.Token)
	if !i.NextExpiry.Given || i.NextExpiry.Value <= 0 || i.NextExpiry.Value > long {
		s.Fatalf("next expiry: got %v, want the first of the two leases", i.NextExpiry)
	}
	if i.OldestWait < 20*time.Millisecond {
		s.Fatalf("oldest wait: got %v, want at least 20ms", i.OldestWait)
	}
}

func holdersAreListedInPages(s *sem) {
	const holders = 130
	s.create(2 * holders)
	tokens := map[string]int64{}
	for i := range holders {
		g := s.grant(semaphore.Acquire{Holder: fmt.Sprint(i), Permits: 2, Lease: long, Label: fmt.Sprint("pod ", i)})
		tokens[g.Holder] = g.Token
	}
	s.release("0")
	for cursor := uint64(0); ; {
		page := value[*semaphore.HolderPage](s, semaphore.Holders{Key: s.key, Cursor: cursor, Count: 20})
		if len(page.Rows) > 20 {
			s.Fatalf("rows: got %d, want at most 20", len(page.Rows))
		}
		for _, row := range page.Rows {
			equal(s, "token of "+row.Holder, row.Token, tokens[row.Holder])
			equal(s, "permits", row.Permits, 2)
			equal(s, "label", row.Client, "pod "+row.Holder)
			if row.Remaining <= 0 || row.Remaining > long || row.Held < 0 || row.Slot < 0 {
				s.Fatalf("row: got %+v, want one of a live lease of %v", row, long)
			}
			delete(tokens, row.Holder) // a second sight finds no token
		}
		if cursor = page.Next; cursor == 0 {
			break
		}
	}
	equal(s, "holders not seen", len(tokens), 1) // the one that was released
}

func waitersAreListedInLineOrder(s *sem) {
	s.create(2)
	s.grant(semaphore.Acquire{Holder: "a", Permits: 2})
	var want, got []string
	for i := range 60 {
		w := s.wait(semaphore.Acquire{Holder: fmt.Sprint("w", i), Permits: 2, Label: "label"})
		want = append(want, w.request.Holder)
	}
	for cursor := uint64(0); ; {
		page := value[*semaphore.WaiterPage](s, semaphore.Waiters{Key: s.key, Cursor: cursor, Count: 25})
		for _, row := range page.Rows {
			got = append(got, row.Holder)
			equal(s, "permits", row.Permits, 2)
			equal(s, "label", row.Client, "label")
			if row.Remaining <= 0 || row.Remaining > long || row.Waited < 0 {
				s.Fatalf("row: got %+v, want one of a wait of %v", row, long)
			}
		}
		if cursor = page.Next; cursor == 0 {
			break
		}
	}
	if !slices.Equal(got, want) {
		s.Fatalf("line: got %v, want %v", got, want)
	}
}

// scanSeesEachOnce scans while others come and go.
func scanSeesEachOnce(s *sem) {
	seen := map[string]int{}
	for i := range 70 {
		kept := s.beside(fmt.Sprint(i))
		kept.create(1)
		seen[kept.key] = 0
	}
	stop := make(chan struct{})
	var noise sync.WaitGroup
	defer noise.Wait()
	defer close(stop)
	noise.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				brief := semaphore.Create{Key: s.key + "/brief" + fmt.Sprint(i%20), Capacity: 1}
				s.backend.Do([]semaphore.Request{brief, semaphore.Delete{Key: brief.Key}})
			}
		}
	})
	for cursor := uint64(0); ; {
		page := value[*semaphore.KeyPage](s, semaphore.Scan{Cursor: cursor, Count: 9})
		for _, key := range page.Keys {
			if _, ours := seen[key]; ours {
				seen[key]++
			}
		}
		if cursor = page.Next; cursor == 0 {
			break
		}
	}
	for key, times := range seen {
		equal(s, "sights of "+key, times, 1)
	}
}

func refusalsChangeNothing(s *sem) {
	s.create(2, semaphore.Settings{MaxLease: semaphore.Set(long)})
	s.grant(semaphore.Acquire{Holder: "a", Lease: long})
	s.wait(semaphore.Acquire{Holder: "w", Permits: 2})
	before := s.info()
	for code, r := range map[semaphore.Code]semaphore.Request{
		semaphore.CodeTooMany:  s.ask(semaphore.Acquire{Holder: "b", Permits: 3, Wait: long}),
		semaphore.CodeInvalid:  s.ask(semaphore.Acquire{Holder: "b", Lease: long + 1, Wait: long}),
		semaphore.CodeConflict: s.ask(semaphore.Acquire{Holder: "a", Permits: 2}),
		semaphore.CodeInUse:    semaphore.Delete{Key: s.key},
	} {
		s.refused(code, r)
	}
	equal(s, "renew of another token", s.number(semaphore.Renew{Key: s.key, Holder: "a", Lease: time.Second, Token: 1}), 0)
	after := s.info()
	after.OldestWait, after.NextExpiry = before.OldestWait, before.NextExpiry
	equal(s, "info", *after, *before)
}
