package fsm

import (
	"fmt"
	"runtime"
	"testing"

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
