package fsm

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// crowded returns a state whose semaphore "k" has that many holders with a long lease.
func crowded(t testing.TB, holders int, lease time.Duration) *State {
	t.Helper()
	s := New()
	applyAll(t, s, 0, semaphore.Create{Key: "k", Capacity: semaphore.MaxCapacity})
	var all []semaphore.Request
	for i := range holders {
		all = append(all, semaphore.Acquire{Key: "k", Holder: fmt.Sprintf("holder-%09d", i), Label: "client-of-16-byt", Permits: 1, Lease: lease})
	}
	applyAll(t, s, 0, all...)
	return s
}

// applyAll applies requests in entries of 512.
func applyAll(t testing.TB, s *State, stamp Time, all ...semaphore.Request) {
	t.Helper()
	for len(all) > 0 {
		n := min(len(all), 512)
		if _, err := s.Apply(entryOf(stamp, all[:n]...), testTerm, nil); err != nil {
			t.Fatal(err)
		}
		all = all[n:]
	}
}

func entryOf(stamp Time, all ...semaphore.Request) []byte {
	b := newBatch(testTerm)
	b.Section(1, 1, semaphore.DefaultLimits())
	var buf []byte
	for _, q := range all {
		buf = AppendRequest(buf, q)
	}
	b.Add(buf, len(all))
	return b.Seal(stamp, 0)
}

// BenchmarkAcquireAndRelease measures one request of a batch of 512 (half of them acquires, half
// releases in another order) on a semaphore with 100,000 holders.
func BenchmarkAcquireAndRelease(b *testing.B) {
	const batch = 256
	s := crowded(b, 100_000, time.Hour)
	entries := make([][]byte, 64)
	for i := range entries {
		var all []semaphore.Request
		for j := range batch {
			n := (i*batch + j) * 7919 % 100_000
			all = append(all, semaphore.Release{Key: "k", Holder: fmt.Sprintf("holder-%09d", n)})
		}
		for j := range batch {
			n := (i*batch + j) * 7919 % 100_000
			all = append(all, semaphore.Acquire{Key: "k", Holder: fmt.Sprintf("holder-%09d", n), Label: "client-of-16-byt", Permits: 1})
		}
		entries[i] = entryOf(1, all...)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Apply(entries[i%len(entries)], testTerm, everybody); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*batch), "ns/request")
}

// BenchmarkCrowdGrows measures one acquire of an entry of 400, on a semaphore that grows from nobody to
// 300,000 holders.
func BenchmarkCrowdGrows(b *testing.B) {
	const batch, holders = 400, 300_000
	random := rand.New(rand.NewPCG(1, 2))
	var entries [][]byte
	for i := range holders / batch {
		all := make([]semaphore.Request, batch)
		for j := range all {
			all[j] = semaphore.Acquire{
				Key: "bench", Holder: fmt.Sprintf("%012d", random.Int64N(1e12)), Label: "127.0.0.1:54321",
				Permits: 1, Lease: time.Minute,
			}
		}
		entries = append(entries, entryOf(Time(i*1000), all...))
	}
	b.ReportAllocs()
	for b.Loop() {
		s := New()
		applyAll(b, s, 0, semaphore.Create{Key: "bench", Capacity: semaphore.MaxCapacity})
		for _, entry := range entries {
			if _, err := s.Apply(entry, testTerm, everybody); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/holders, "ns/request")
}

// BenchmarkExpiry measures entries of a state in which 100,000 leases end in one instant, of one
// semaphore and of as many: in all, and the slowest entry.
func BenchmarkExpiry(b *testing.B) {
	const leases = 100_000
	for _, semaphores := range []int{1, leases} {
		b.Run(fmt.Sprintf("semaphores=%d", semaphores), func(b *testing.B) {
			slowest := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				s := New()
				var all []semaphore.Request
				for i := range leases {
					all = append(all, semaphore.Acquire{
						Key: fmt.Sprintf("key-%d", i%semaphores), Holder: fmt.Sprintf("holder-%09d", i), Permits: 1,
						Lease: time.Second, Create: true, Capacity: leases,
					})
				}
				applyAll(b, s, 0, all...)
				b.StartTimer()
				for s.Stats().Holders > 0 {
					began := time.Now()
					applyAll(b, s, 2_000_000, semaphore.Release{})
					slowest = max(slowest, time.Since(began))
				}
			}
			b.ReportMetric(float64(slowest.Microseconds()), "slowest-µs/entry")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/leases, "ns/lease")
		})
	}
}

// BenchmarkSnapshot measures how long the state stands still for a snapshot of a million grants, and
// how long the first changes behind it take.
func BenchmarkSnapshot(b *testing.B) {
	s := crowded(b, 1_000_000, time.Hour)
	entry := entryOf(1, semaphore.Renew{Key: "k", Holder: "holder-000500000"})
	for b.Loop() {
		s.Snapshot().Release()
		if _, err := s.Apply(entry, testTerm, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshotWrite measures writing and restoring a million grants.
func BenchmarkSnapshotWrite(b *testing.B) {
	s := crowded(b, 1_000_000, time.Hour)
	data := snapshotOf(b, s)
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			sn := s.Snapshot()
			if _, err := sn.WriteTo(io.Discard); err != nil {
				b.Fatal(err)
			}
			sn.Release()
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := Restore(bytes.NewReader(data)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHandOver measures a request of a batch of 512 on a thousand semaphores with a capacity of
// one: who holds releases, and the grant goes to who waits.
func BenchmarkHandOver(b *testing.B) {
	const semaphores, batch = 1000, 256
	s := New()
	var setup []semaphore.Request
	for i := range semaphores {
		key := fmt.Sprintf("key-%d", i)
		setup = append(setup, semaphore.Create{Key: key, Capacity: 1},
			semaphore.Acquire{Key: key, Holder: "holder-0", Permits: 1, Lease: time.Hour})
	}
	applyAll(b, s, 0, setup...)
	var entries [][]byte
	for round := range 2 {
		for from := 0; from+batch <= semaphores; from += batch {
			var all []semaphore.Request
			for i := from; i < from+batch; i++ {
				key := fmt.Sprintf("key-%d", i)
				all = append(all,
					semaphore.Acquire{Key: key, Holder: fmt.Sprintf("holder-%d", 1-round), Permits: 1, Lease: time.Hour, Wait: time.Minute},
					semaphore.Release{Key: key, Holder: fmt.Sprintf("holder-%d", round)})
			}
			entries = append(entries, entryOf(1, all...))
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Apply(entries[i%len(entries)], testTerm, everybody); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*batch), "ns/request")
}
