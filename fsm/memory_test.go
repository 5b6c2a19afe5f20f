package fsm

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// maxBytesPerHolder is what a holder may cost where semaphores have ten of them, the semaphore's own
// share included.
const maxBytesPerHolder = 250

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestHolderTakesLittleMemory(t *testing.T) {
	const semaphores, holders = 100_000, 10
	before := heapInUse()
	s := New()
	for i := range semaphores {
		key := fmt.Sprintf("semaphore-%06d", i)
		all := []semaphore.Request{semaphore.Create{Key: key, Capacity: holders}}
		for j := range holders {
			all = append(all, semaphore.Acquire{Key: key, Holder: fmt.Sprintf("holder-%09d", i*holders+j), Label: "client-of-16-byt", Permits: 1})
		}
		if _, err := s.Apply(entryOf(0, all...), testTerm, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Stats().Holders; got != semaphores*holders {
		t.Fatalf("got %d holders, want %d", got, semaphores*holders)
	}
	got := (heapInUse() - before) / (semaphores * holders)
	runtime.KeepAlive(s)
	t.Logf("%d bytes a holder", got)
	if got > maxBytesPerHolder {
		t.Errorf("got %d bytes a holder, want at most %d", got, maxBytesPerHolder)
	}
}

// TestStateKeepsNothingOfAnEntry applies entries that are large for what they leave behind.
func TestStateKeepsNothingOfAnEntry(t *testing.T) {
	const entries = 200
	ballast := semaphore.Cancel{Key: strings.Repeat("x", maxText), Holder: "h"}
	s := crowded(t, 1, time.Hour)
	before := heapInUse()
	for i := range entries {
		applyAll(t, s, 0, ballast,
			semaphore.Acquire{Key: fmt.Sprintf("key-%d", i), Holder: "h", Label: "l", Permits: 1, Create: true, Capacity: 1},
			semaphore.Acquire{Key: fmt.Sprintf("key-%d", i), Holder: "w", Label: "l", Permits: 1, Wait: time.Hour})
	}
	after := heapInUse()
	runtime.KeepAlive(s)
	if got, limit := int64(after)-int64(before), int64(entries*maxText/10); got > limit {
		t.Errorf("got %d bytes kept of %d entries, want at most %d", got, entries, limit)
	}
}

// TestSnapshotCostsTheSameHoweverLargeTheStateIs counts what a snapshot and the first change behind it
// allocate.
func TestSnapshotCostsTheSameHoweverLargeTheStateIs(t *testing.T) {
	const limit = 64 << 10
	for _, holders := range []int{100, 100_000} {
		s := crowded(t, holders, time.Hour)
		entry := entryOf(1, semaphore.Renew{Key: "k", Holder: "holder-000000050"})
		got := allocated(func() {
			defer s.Snapshot().Release()
			if _, err := s.Apply(entry, testTerm, nil); err != nil {
				t.Error(err)
			}
		})
		if got > limit {
			t.Errorf("%d holders: got %d bytes allocated, want at most %d", holders, got, limit)
		}
	}
}
