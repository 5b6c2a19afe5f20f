package fsm

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// wantSameElsewhere fails unless another node is told the same.
func wantSameElsewhere(rt *rapid.T, out Outcome) {
	var data []byte
	count := 0
	for _, s := range out.Sections {
		for _, r := range s.Replies {
			data = AppendReply(data, r)
			count++
		}
	}
	got, err := DecodeReplies(data, count)
	if err != nil {
		rt.Fatalf("decode replies: %v", err)
	}
	for _, s := range out.Sections {
		for _, want := range s.Replies {
			if !sameReply(got[0], want) {
				rt.Fatalf("got %s elsewhere, want %s", show(got[0]), show(want))
			}
			got = got[1:]
		}
	}
	for _, e := range out.Events {
		got, err := DecodeEvents(AppendEvent(nil, e), e.Ticket.Incarnation)
		if err != nil || !sameEvents(got, []Event{e}) {
			rt.Fatalf("got events %+v and %v elsewhere, want %+v", got, err, e)
		}
	}
}

func FuzzReplies(f *testing.F) {
	s := seasoned(f)
	b := newBatch(testTerm)
	b.Section(1, 1, semaphore.DefaultLimits())
	for _, q := range everyRequest() {
		b.Add(AppendRequest(nil, q), 1)
	}
	out, err := s.Apply(b.Seal(1_600_000, 0), testTerm, everybody)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range out.Sections[0].Replies {
		f.Add(AppendReply(nil, r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var replies []semaphore.Reply
		var err error
		if n := allocated(func() { replies, err = DecodeReplies(data, 1) }); n > 1<<16+uint64(len(data))*256 {
			t.Errorf("got %d bytes allocated for a reply of %d", n, len(data))
		}
		if err == nil {
			AppendReply(nil, replies[0])
		}
		if _, err := DecodeEvents(data, 1); err != nil {
			return
		}
	})
}

func FuzzSection(f *testing.F) {
	b := newBatch(testTerm)
	b.Section(1, 1, semaphore.DefaultLimits())
	for _, q := range everyRequest() {
		b.Add(AppendRequest(nil, q), 1)
	}
	f.Add(b.data[batchHeader:])
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := CheckSection(data)
		if err != nil {
			return
		}
		s := New()
		b := newBatch(testTerm)
		b.Attach(data)
		out, err := s.Apply(b.Seal(1_000_000, 0), testTerm, everybody)
		if err != nil {
			t.Fatalf("got %v for a section that was found sound", err)
		}
		if got := out.Sections[0]; got.Incarnation != p.Incarnation || got.First != p.First || len(got.Replies) != p.Requests {
			t.Errorf("got section %d from %d with %d replies, want %+v", got.Incarnation, got.First, len(got.Replies), p)
		}
	})
}
