package fsm

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// play builds one random entry, applies it to s and remembers the tickets of its replies.
func (g *gambler) play(s *State, stamp, number *int64) []byte {
	*stamp += int64(g.n("pause", 0, 40)) * 1000
	b := newBatch(testTerm)
	if g.chance("loss", 5) {
		b.Lost(uint64(g.n("lost", 1, 2)), ms(30))
	}
	var requests []semaphore.Request
	from, first := uint64(g.n("from", 1, 2)), uint64(*number)
	if !g.chance("tick", 20) {
		b.Section(from, first, g.limits())
		for range g.n("requests", 1, 5) {
			q := g.request()
			b.Add(AppendRequest(nil, q), 1)
			requests = append(requests, q)
		}
		*number += int64(len(requests))
	}
	entry := b.Seal(Time(*stamp), int64(g.n("wall", 0, 50)))
	out, err := s.Apply(entry, testTerm, everybody)
	if err != nil {
		g.Fatalf("apply: %v", err)
	}
	g.out = out
	for i, q := range requests {
		g.note(semaphore.Ticket{Incarnation: from, Number: first + uint64(i)}, q, out.Sections[0].Replies[i])
	}
	return entry
}

// small returns a state that does so little at a time that work is left undone all the while.
func small(s *State, portion, allowance int) *State {
	s.portion, s.allowance = portion, allowance
	return s
}

// TestSameLogGivesTheSameBytes applies one log to three states. The second goes through snapshot and
// restore at random points, and nobody listens to it; the third is snapshotted and goes on.
func TestSameLogGivesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		portion, allowance := rapid.SampledFrom([]int{1, 2, 3, 4096}).Draw(rt, "portion"), rapid.IntRange(0, 16).Draw(rt, "allowance")
		g := &gambler{T: rt, waits: true}
		first, second, third := small(New(), portion, allowance), small(New(), portion, allowance), small(New(), portion, allowance)
		stamp, number := int64(0), int64(1)
		var open *Snapshot
		var openBytes []byte
		for range g.n("entries", 1, 50) {
			entry := g.play(first, &stamp, &number)
			mustApply(rt, second, entry, nil)
			mustApply(rt, third, entry, func(incarnation uint64) bool { return incarnation == 2 })
			if g.chance("restore", 25) {
				second = small(mustRestore(rt, snapshotBytes(rt, second)), portion, allowance)
			}
			if open == nil && g.chance("snapshot", 30) {
				openBytes = snapshotBytes(rt, third)
				open = third.Snapshot()
			} else if open != nil && g.chance("write", 30) {
				var b bytes.Buffer
				if _, err := open.WriteTo(&b); err != nil || !bytes.Equal(b.Bytes(), openBytes) {
					rt.Fatalf("a snapshot written late differs from one written at once (%v)", err)
				}
				open.Release()
				open = nil
			}
			want := snapshotBytes(rt, first)
			if !bytes.Equal(want, snapshotBytes(rt, second)) {
				rt.Fatalf("the restored state differs")
			}
			if !bytes.Equal(want, snapshotBytes(rt, third)) {
				rt.Fatalf("the snapshotted state differs")
			}
			for _, s := range []*State{first, second, third} {
				if err := s.Check(); err != nil {
					rt.Fatalf("check: %v", err)
				}
			}
		}
	})
}

func mustApply(rt *rapid.T, s *State, entry []byte, wanted func(uint64) bool) {
	if _, err := s.Apply(entry, testTerm, wanted); err != nil {
		rt.Fatalf("apply: %v", err)
	}
}

func mustRestore(rt *rapid.T, data []byte) *State {
	s, err := Restore(bytes.NewReader(data))
	if err != nil {
		rt.Fatalf("restore: %v", err)
	}
	return s
}

// TestCutWorkChangesNoAnswer compares a state that never processes more than it must with one that
// processes everything at once. Which slots are taken may differ, and nothing else. (Removal of unused
// semaphores is left out: it may come an entry later where its turn has not come.)
func TestCutWorkChangesNoAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := &gambler{T: rt, stays: true}
		lazy, eager := small(New(), g.n("portion", 0, 2), g.n("allowance", 0, 1)), New()
		stamp, number := int64(0), int64(1)
		for range g.n("entries", 1, 50) {
			entry := g.play(eager, &stamp, &number)
			out, err := lazy.Apply(entry, testTerm, everybody)
			if err != nil {
				rt.Fatalf("apply: %v", err)
			}
			for i := range out.Sections {
				for j, r := range out.Sections[i].Replies {
					if got, want := withoutSlots(r), withoutSlots(g.out.Sections[i].Replies[j]); !sameReply(got, want) {
						rt.Fatalf("reply %d: got %v, want %v", j, show(got), show(want))
					}
				}
			}
			if err := lazy.Check(); err != nil {
				rt.Fatalf("check: %v", err)
			}
			for _, q := range reads() {
				got, want := withoutSlots(readThrough(rt, lazy, q)), withoutSlots(readThrough(rt, eager, q))
				if !sameReply(got, want) {
					rt.Fatalf("%T%+v: got %v, want %v", q, q, show(got), show(want))
				}
			}
		}
	})
}

func withoutSlots(r semaphore.Reply) semaphore.Reply {
	switch v := r.Value.(type) {
	case *semaphore.Grant:
		grant := *v
		grant.Slots = nil
		return semaphore.Reply{Value: &grant}
	case *semaphore.Info:
		info := *v
		info.Rows = 0
		return semaphore.Reply{Value: &info}
	case *semaphore.HolderPage:
		page := semaphore.HolderPage{Next: v.Next}
		for _, row := range v.Rows {
			row.Slot = 0
			page.Rows = append(page.Rows, row)
		}
		return semaphore.Reply{Value: &page}
	}
	return r
}

// TestTicksDrainWhatWasCut proposes ticks as Next asks for them, and expects that everything overdue
// is done in the end.
func TestTicksDrainWhatWasCut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := &gambler{T: rt, waits: true}
		s := small(New(), 1, 0)
		stamp, number := int64(0), int64(1)
		for range g.n("entries", 1, 50) {
			g.play(s, &stamp, &number)
		}
		for i := 0; ; i++ {
			next, ok := s.Next()
			if !ok || next > s.Now() {
				break
			}
			if i > 1000 {
				rt.Fatalf("still work to do after 1000 ticks")
			}
			mustApply(rt, s, newBatch(testTerm).Seal(Time(stamp), 0), nil)
			if err := s.Check(); err != nil {
				rt.Fatalf("check: %v", err)
			}
		}
	})
}

// TestSnapshotIsWrittenBesideApply is for the race detector, and for the bytes.
func TestSnapshotIsWrittenBesideApply(t *testing.T) {
	s := crowded(t, 2_000, time.Hour)
	applyAll(t, s, 1, semaphore.Create{Key: "k2", Capacity: 1, Settings: semaphore.Settings{Quarantine: semaphore.Set(ms(5))}})
	stamp := Time(1)
	for range 20 {
		want := snapshotOf(t, s)
		var got bytes.Buffer
		var writing sync.WaitGroup
		sn := s.Snapshot()
		writing.Go(func() {
			if _, err := sn.WriteTo(&got); err != nil {
				t.Error(err)
			}
		})
		for range 20 {
			stamp += 1000
			applyAll(t, s, stamp, busy(int(stamp/1000))...)
		}
		writing.Wait()
		sn.Release()
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatal("a snapshot written beside Apply differs from one written at once")
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// busy returns requests that change a bit of everything.
func busy(i int) []semaphore.Request {
	name := func(n int) string {
		return "holder-00000" + string([]byte{'0' + byte(n/1000%10), '0' + byte(n/100%10), '0' + byte(n/10%10), '0' + byte(n%10)})
	}
	return []semaphore.Request{
		semaphore.Renew{Key: "k", Holder: name(i * 7 % 2000), Lease: time.Hour},
		semaphore.Release{Key: "k", Holder: name(i * 11 % 2000)},
		semaphore.Acquire{Key: "k", Holder: name(i * 13 % 2000), Permits: 1},
		semaphore.Acquire{Key: "k2", Holder: name(i), Permits: 1, Lease: ms(2), Wait: ms(5)},
		semaphore.Acquire{Key: "k2", Holder: name(i + 1), Permits: 1, Lease: ms(2), Wait: ms(5)},
		semaphore.Acquire{Key: "k2", Holder: name(i + 1), Permits: 1, Lease: ms(2), Wait: ms(9)},
		semaphore.Resize{Key: "k2", Capacity: int64(1 + i%2)},
		semaphore.Acquire{Key: name(i % 50), Holder: "h", Permits: 1, Lease: ms(3), Create: true, Capacity: 1},
		semaphore.Delete{Key: name((i + 25) % 50), Force: true},
	}
}
