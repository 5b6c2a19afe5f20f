package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// TestSlotsAreTheLowestFreeOnes compares with a plain set.
func TestSlotsAreTheLowestFreeOnes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s slots
		var held [][]semaphore.Range
		taken := make(map[int64]bool)
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			if len(held) == 0 || rapid.Bool().Draw(rt, "take") {
				n := rapid.Int64Range(1, 9).Draw(rt, "n")
				var want []int64
				for slot := int64(0); int64(len(want)) < n; slot++ {
					if !taken[slot] {
						want = append(want, slot)
						taken[slot] = true
					}
				}
				got := s.take(n, nil)
				if !slices.Equal(got, asRanges(want)) {
					rt.Fatalf("got %v, want %v", got, asRanges(want))
				}
				held = append(held, got)
				wantTopTaken(rt, &s)
				continue
			}
			i := rapid.IntRange(0, len(held)-1).Draw(rt, "put")
			for _, r := range held[i] {
				for slot := r.First; slot <= r.Last; slot++ {
					delete(taken, slot)
				}
			}
			s.put(held[i])
			held = slices.Delete(held, i, i+1)
			var want slots
			if want.occupy(slices.Concat(held...)); !slices.Equal(s.list(), want.list()) {
				rt.Fatalf("got free %v, want %v", s.list(), want.list())
			}
			wantTopTaken(rt, &s)
			wantTopTaken(rt, &want)
		}
	})
}

// wantTopTaken fails where the highest gap reaches the top: what take joins to it would be one range.
func wantTopTaken(rt *rapid.T, s *slots) {
	if s.gaps == nil {
		return
	}
	if first, last, ok := s.gaps.Max(); !ok || last+1 >= s.top {
		rt.Fatalf("got gap %d-%d below the top %d, want a place taken between them", first, last, s.top)
	}
}

func TestLargestCapacityCostsNothing(t *testing.T) {
	var s slots
	all := s.take(semaphore.MaxCapacity, nil)
	if want := (semaphore.Range{First: 0, Last: semaphore.MaxCapacity - 1}); !slices.Equal(all, []semaphore.Range{want}) {
		t.Fatalf("got %v, want %v", all, want)
	}
	s.put(all)
	if s.top != 0 || s.gaps != nil {
		t.Errorf("got top %d and gaps %v, want none", s.top, s.gaps)
	}
}
