package cluster

import (
	"bufio"
	"bytes"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// guestOf attaches a life of a node to a leader of term 1.
func guestOf(t *testing.T, gs *guests, node string, incarnation uint64) *hostStream {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	s := &hostStream{
		conn: ours, node: node, incarnation: incarnation, term: 1,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if !gs.attach(s) {
		t.Fatal("not attached")
	}
	return s
}

func leadingGuests() *guests {
	gs := newGuests(false)
	gs.begin(1, nil)
	return gs
}

func sectionOf(incarnation, first uint64) guestSection {
	p := fsm.Part{Incarnation: incarnation, First: first, Requests: 1}
	q := fsm.AppendRequest(nil, semaphore.Inspect{Key: "k"})
	return guestSection{p, append(fsm.AppendSection(nil, p, semaphore.DefaultLimits(), len(q)), q...)}
}

// firsts takes one entry's sections.
func firsts(gs *guests) []uint64 {
	taken, _ := gs.take(1)
	var all []uint64
	for _, s := range taken {
		all = append(all, s.First)
	}
	slices.Sort(all)
	return all
}

func wantFirsts(t *testing.T, when string, got []uint64, want ...uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got sections %v, want %v", when, got, want)
	}
}

func TestEntryCarriesOneSectionOfEachGuest(t *testing.T) {
	gs := leadingGuests()
	a, b := guestOf(t, gs, "a", 1), guestOf(t, gs, "b", 2)
	gs.add(a, sectionOf(1, 1))
	gs.add(a, sectionOf(1, 2))
	gs.add(b, sectionOf(2, 7))
	wantFirsts(t, "the first entry", firsts(gs), 1, 7)
	wantFirsts(t, "the second", firsts(gs), 2)
	wantFirsts(t, "the third", firsts(gs))
}

func TestSectionThatIsSentAgainIsTakenOverOnce(t *testing.T) {
	gs := leadingGuests()
	gs.add(guestOf(t, gs, "a", 1), sectionOf(1, 1))
	again := guestOf(t, gs, "a", 1) // its stream broke and came back
	gs.add(again, sectionOf(1, 1))
	gs.add(again, sectionOf(1, 2))
	wantFirsts(t, "the first entry", firsts(gs), 1)
	wantFirsts(t, "the second", firsts(gs), 2)
	gs.add(again, sectionOf(1, 1))
	wantFirsts(t, "after it was proposed", firsts(gs))
}

func TestSectionOfALostGuestIsProposedOnlyIfItIsSentAgain(t *testing.T) {
	gs := leadingGuests()
	s := guestOf(t, gs, "a", 1)
	gs.add(s, sectionOf(1, 1))
	wantFirsts(t, "proposed", firsts(gs), 1)
	gs.add(s, sectionOf(1, 2))
	for range lostAfter {
		gs.tick()
	}
	taken, gone := gs.take(1)
	if len(taken) != 0 || !slices.Equal(gone, []uint64{1}) {
		t.Fatalf("got %d sections and %v lost, want none, and the guest", len(taken), gone)
	}
	back := guestOf(t, gs, "a", 1)
	gs.add(back, sectionOf(1, 1))
	gs.add(back, sectionOf(1, 2))
	wantFirsts(t, "sent again", firsts(gs), 2)
	wantFirsts(t, "once", firsts(gs))
}

func TestRefusedEntryGivesBackWhatItCarried(t *testing.T) {
	gs := leadingGuests()
	s := guestOf(t, gs, "a", 1)
	gs.add(s, sectionOf(1, 1))
	gs.add(s, sectionOf(1, 2))
	gs.retire(9)
	f := &flight{term: 1}
	f.guests, f.lost = gs.take(1)
	gs.again(f)
	wantFirsts(t, "again", firsts(gs), 1)
	gs.again(&flight{term: 1, lost: []uint64{9}})
	if _, gone := gs.take(1); !slices.Equal(gone, []uint64{9}) {
		t.Errorf("got %v lost, want what the refused entry said", gone)
	}
}

func TestGuestThatIsHeardIsNotLost(t *testing.T) {
	gs := leadingGuests()
	s := guestOf(t, gs, "a", 1)
	for range 3 * lostAfter {
		gs.heard(s)
		if gs.tick() {
			t.Fatal("lost though it is heard")
		}
	}
	gs.detach(s)
	for range lostAfter - 2 {
		if gs.tick() {
			t.Fatal("lost though its stream was broken for less")
		}
	}
	guestOf(t, gs, "a", 1)
	if gs.tick() {
		t.Error("lost though it came back")
	}
}

func TestNewLifeOfANodeEndsItsOldOneAtOnce(t *testing.T) {
	gs := leadingGuests()
	old := guestOf(t, gs, "a", 1)
	guestOf(t, gs, "a", 2)
	if _, gone := gs.take(1); !slices.Equal(gone, []uint64{1}) {
		t.Errorf("got %v lost, want the old life", gone)
	}
	gs.add(old, sectionOf(1, 1))
	wantFirsts(t, "from the old life", firsts(gs))
	select {
	case <-old.done:
	default:
		t.Error("the stream of the old life is open")
	}
}

func TestWordsOfAnOldStreamDoNotCount(t *testing.T) {
	gs := leadingGuests()
	old := guestOf(t, gs, "a", 1)
	now := guestOf(t, gs, "a", 1)
	gs.add(old, sectionOf(1, 5))
	wantFirsts(t, "from the old stream", firsts(gs))
	gs.detach(old) // its goroutine ends late
	if !gs.attached(1) {
		t.Error("the end of the old stream detached the new one")
	}
	gs.add(now, sectionOf(1, 5))
	wantFirsts(t, "from the new one", firsts(gs), 5)
}

// A guest whose leader stops leading learns which of its sections will never be proposed.
func TestGuestsOfATermThatIsOverAreSentAway(t *testing.T) {
	gs := leadingGuests()
	ours, theirs := net.Pipe()
	s := &hostStream{conn: ours, node: "a", incarnation: 1, term: 1, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if !gs.attach(s) {
		t.Fatal("not attached")
	}
	gs.add(s, sectionOf(1, 1))
	wantFirsts(t, "proposed", firsts(gs), 1)
	gs.add(s, sectionOf(1, 2))
	gs.dismiss(2)
	var writing sync.WaitGroup
	writing.Go(s.write)
	in, buffer := bufio.NewReader(theirs), []byte(nil)
	kind, body, err := readFrame(in, &buffer, func() {})
	if first, _ := readNumber(body); err != nil || kind != frameRefused || first != 2 {
		t.Errorf("got frame %d about %d and %v, want 2 refused", kind, first, err)
	}
	for err == nil {
		_, _, err = readFrame(in, &buffer, func() {})
	}
	writing.Wait()
	gs.begin(2, nil)
	if taken, _ := gs.take(2); len(taken) != 0 {
		t.Errorf("got %d sections in another term than they were sent to", len(taken))
	}
	if gs.attach(&hostStream{conn: s.conn, term: 1}) {
		t.Error("attached to a term that is over")
	}
}

func TestBacklogOverItsLimitEndsTheStream(t *testing.T) {
	gs := leadingGuests()
	s := guestOf(t, gs, "a", 1)
	page := &semaphore.KeyPage{Keys: []string{string(bytes.Repeat([]byte("k"), 1<<15))}}
	for range maxBacklog>>15 + 1 {
		gs.tell(fsm.Outcome{Sections: []fsm.Section{{Incarnation: 1, First: 1, Replies: []semaphore.Reply{{Value: page}}}}}, 0)
	}
	select {
	case <-s.done:
	case <-time.After(fleetPatience):
		t.Error("the stream of a guest that does not read is open")
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendNumber(nil, frameHello, 7))
	f.Add(appendFrame(nil, frameSection, sectionOf(1, 1).data))
	f.Add(appendAnswer(nil, fsm.Section{First: 3, Replies: []semaphore.Reply{{Value: semaphore.Number(1)}}}))
	f.Add(appendEvent(nil, fsm.Event{Ticket: semaphore.Ticket{Incarnation: 1, Number: 2}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		var buffer []byte
		for {
			kind, body, err := readFrame(r, &buffer, func() {})
			if err != nil {
				return
			}
			if len(body) > len(data) {
				t.Fatalf("a body of %d bytes out of %d", len(body), len(data))
			}
			if _, err := readNumber(body); err == nil && len(body) != 8 {
				t.Errorf("a number of %d bytes", len(body))
			}
			s, err := readAnswer(body, 1)
			if err == nil && kind == frameAnswer && !bytes.Equal(appendAnswer(nil, s)[frameHeader:frameHeader+12], body[:12]) {
				t.Errorf("got %+v from %x", s, body)
			}
		}
	})
}
