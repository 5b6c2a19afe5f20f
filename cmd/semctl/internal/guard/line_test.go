package guard

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// waiters is a line of so many, and then an error if there is one.
func waiters(n int, err error) iter.Seq2[remote.Waiter, error] {
	return func(yield func(remote.Waiter, error) bool) {
		for i := range n {
			if !yield(remote.Waiter{Holder: fmt.Sprint("w", i+1)}, nil) {
				return
			}
		}
		if err != nil {
			yield(remote.Waiter{}, err)
		}
	}
}

func TestPlaceIsCountedFromTheHeadAsFarAsIsLooked(t *testing.T) {
	for _, c := range []struct {
		length int
		holder string
		place  int
		beyond bool
	}{
		{3, "w1", 1, false}, {3, "w3", 3, false}, {3, "other", 0, false},
		{5000, "w1000", 1000, false}, {5000, "w1001", 0, true},
	} {
		place, beyond, err := placeOf(waiters(c.length, nil), c.holder)
		if place != c.place || beyond != c.beyond || err != nil {
			t.Errorf("%s of %d: got %d, %v, %v; want %d, %v", c.holder, c.length, place, beyond, err, c.place, c.beyond)
		}
	}
	broken := errors.New("broken")
	if _, _, err := placeOf(waiters(2, broken), "w3"); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestLineIsToldInWords(t *testing.T) {
	held := remote.Holder{Holder: "pod-1", Client: "nightly", Held: 12 * time.Second}
	for want, l := range map[string]line{
		"waiting for loader: place 3 of 40; held by pod-1 (nightly) for 12s and 7 more; waited 1.5s of 5m": {
			name: "loader", place: 3, waiters: 40, holders: []remote.Holder{held}, more: 7, waited: 1500 * time.Millisecond, wait: 5 * time.Minute},
		"waiting for \"a\\n\": place beyond 1000 of 2000; nobody holds it; waited 0s of 1s": {
			name: "a\n", beyond: true, waiters: 2000, wait: time.Second},
	} {
		if got := l.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSlotsAreWrittenAsRanges(t *testing.T) {
	for want, slots := range map[string][]client.Slots{
		"":        nil,
		"0":       {{First: 0, Last: 0}},
		"0,2-4,9": {{First: 0, Last: 0}, {First: 2, Last: 4}, {First: 9, Last: 9}},
	} {
		if got := SlotList(slots); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
