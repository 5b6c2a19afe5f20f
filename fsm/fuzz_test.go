package fsm

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// everyRequest has one of each kind, with every field set.
func everyRequest() []semaphore.Request {
	all := semaphore.Settings{
		Lease: semaphore.Set(1), MaxLease: semaphore.Set(2), MaxHold: semaphore.Set(3),
		Quarantine: semaphore.Set(0), Idle: semaphore.Set(semaphore.MaxDuration),
	}
	ticket := semaphore.Ticket{Incarnation: 1<<64 - 1, Number: 12}
	return []semaphore.Request{
		semaphore.Create{Key: "k", Capacity: semaphore.MaxCapacity, Settings: all, MinToken: 9, IfAbsent: true},
		semaphore.Acquire{Key: "k", Holder: "h", Made: true, Permits: 3, Lease: time.Second, Wait: time.Hour, Create: true, Capacity: 5, Label: "l", Fresh: true},
		semaphore.Acquire{Key: "k", Holder: "", Permits: -1, Lease: semaphore.Persist},
		semaphore.Release{Key: "k", Holder: "h", Token: 1 << 53},
		semaphore.Renew{Key: "k", Holder: "h", Lease: semaphore.Persist, Token: -1},
		semaphore.Cancel{Key: "k", Holder: "h"},
		semaphore.Check{Key: "k", Holder: "h", Token: 7},
		semaphore.Reconcile{Key: "k", Adopt: true, Capacity: 4},
		semaphore.Resize{Key: "\x00\xff\r\n{}", Capacity: 2, Settings: all},
		semaphore.Inspect{Key: "k"},
		semaphore.Holders{Key: "k", Cursor: 1<<64 - 1, Count: 10},
		semaphore.Waiters{Key: "k", Cursor: 3, Count: 11},
		semaphore.Scan{Cursor: 4, Count: 12},
		semaphore.Delete{Key: "k", Force: true},
		Leave{Key: "k", Holder: "h", Ticket: ticket},
		GiveBack{Key: "k", Holder: "h", Token: 5, Ticket: ticket},
		Rejoin{acquire("h", 1, 0, time.Minute), semaphore.Ticket{Incarnation: 1, Number: 2}},
	}
}

func decodeOne(data string) (semaphore.Request, error) {
	r := &reader{rest: data}
	q := r.request(r.byte())
	return q, r.end()
}

func TestEveryRequestIsDecodedAsItWasEncoded(t *testing.T) {
	for _, want := range everyRequest() {
		got, err := decodeOne(string(AppendRequest(nil, want)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestTruncatedRequestIsAnError(t *testing.T) {
	for _, q := range everyRequest() {
		data := AppendRequest(nil, q)
		for n := range data {
			if _, err := decodeOne(string(data[:n])); err == nil {
				t.Errorf("%T: the first %d of %d bytes were accepted", q, n, len(data))
			}
		}
	}
}

func TestDamagedEntryIsAnErrorAndChangesNothing(t *testing.T) {
	entry := entryOf(5, everyRequest()...)
	for i := range entry {
		s := New()
		damaged := bytes.Clone(entry)
		damaged[i] ^= 0x40
		if _, err := s.Apply(damaged, testTerm, everybody); err == nil {
			t.Errorf("byte %d changed, and the entry was accepted", i)
		}
		if s.Now() != 0 || s.Stats().Semaphores != 0 {
			t.Errorf("byte %d changed, and the state as well", i)
		}
	}
}

// resealed gives data a right version and checksum, so that what lies behind them is reached.
func resealed(data []byte) []byte {
	if len(data) < stampOffset+checksumSize {
		return data
	}
	data = bytes.Clone(data[:len(data)-checksumSize])
	data[0] = entryVersion
	binary.LittleEndian.PutUint64(data[termOffset:], testTerm)
	return appendChecksum(data)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzApply feeds entries that are sound as far as the checksum goes: whatever the rest is, the answer
// is an error or a state that keeps its invariants, in memory that follows from the entry's size.
func FuzzApply(f *testing.F) {
	f.Add(EncodeOpen(Open{Term: testTerm, Incarnation: 1}))
	f.Add(entryOf(5, everyRequest()...))
	b := newBatch(testTerm)
	b.Lost(1, time.Second)
	b.Section(1, 1, semaphore.DefaultLimits())
	b.Section(2, 1<<63, semaphore.Limits{})
	f.Add(b.Seal(1<<62, 1<<60))
	f.Add([]byte{entryVersion, entryBatch})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New()
		applyAll(t, s, 1, fuzzGround()...)
		data = resealed(data)
		var err error
		if n := allocated(func() { _, err = s.Apply(data, testTerm, everybody) }); n > 1<<16+uint64(len(data))*1024 {
			t.Errorf("got %d bytes allocated for an entry of %d", n, len(data))
		}
		if err != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if _, err := Restore(bytes.NewReader(snapshotOf(t, s))); err != nil {
			t.Error(err)
		}
	})
}

// fuzzGround are requests that make a state with a bit of everything.
func fuzzGround() []semaphore.Request {
	return []semaphore.Request{
		semaphore.Create{Key: "k", Capacity: 5, Settings: semaphore.Settings{Quarantine: semaphore.Set(time.Second)}},
		acquire("h", 3, time.Second, 0),
		acquire("i", 1, semaphore.Persist, 0),
		acquire("j", 3, 0, time.Second),
		semaphore.Acquire{Key: "m", Holder: "h", Permits: 1, Create: true, Capacity: 1},
	}
}

// FuzzRequest holds that whatever is accepted is encoded to the very same bytes again.
func FuzzRequest(f *testing.F) {
	for _, q := range everyRequest() {
		f.Add(AppendRequest(nil, q))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := decodeOne(string(data))
		if err != nil {
			return
		}
		if again := AppendRequest(nil, q); !bytes.Equal(again, data) {
			t.Errorf("got %x for %+v, want %x", again, q, data)
		}
	})
}

// seasoned returns a state that has everything a snapshot can hold.
func seasoned(t testing.TB) *State {
	t.Helper()
	s := New()
	applyAll(t, s, 1, fuzzGround()...)
	applyAll(t, s, 1_500_000, acquire("late", 1, 0, time.Hour), acquire("last", 2, 0, time.Hour))
	b := newBatch(testTerm)
	b.Lost(1, time.Minute)
	if _, err := s.Apply(b.Seal(1_600_000, 0), testTerm, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// FuzzRestore feeds snapshots that are sound as far as the checksum goes.
func FuzzRestore(f *testing.F) {
	whole := snapshotOf(f, seasoned(f))
	f.Add(whole)
	f.Add(snapshotOf(f, New()))
	for n := len(snapshotMagic); n < len(whole); n += 7 {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > len(snapshotMagic)+checksumSize {
			data = bytes.Clone(data[:len(data)-checksumSize])
			copy(data, snapshotMagic)
			data[len(snapshotMagic)] = snapshotVersion
			data = appendChecksum(data)
		}
		var s *State
		var err error
		if n := allocated(func() { s, err = Restore(bytes.NewReader(data)) }); n > 1<<20+uint64(len(data))*1024 {
			t.Errorf("got %d bytes allocated for a snapshot of %d", n, len(data))
		}
		if err != nil {
			return
		}
		if again := snapshotOf(t, s); !bytes.Equal(again, data) {
			t.Errorf("got %x, want the bytes restored from, %x", again, data)
		}
		applyAll(t, s, s.Now().plus(1_000_000), everyRequest()...)
	})
}

func TestDamagedSnapshotIsAnError(t *testing.T) {
	whole := snapshotOf(t, seasoned(t))
	restored(t, whole)
	for n := range whole {
		if _, err := Restore(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(whole))
		}
		damaged := bytes.Clone(whole)
		damaged[n] ^= 1
		if _, err := Restore(bytes.NewReader(damaged)); err == nil {
			t.Errorf("byte %d changed, and the snapshot was accepted", n)
		}
	}
	if _, err := Restore(bytes.NewReader(append(bytes.Clone(whole), 0))); err == nil {
		t.Error("a trailing byte was accepted")
	}
}
