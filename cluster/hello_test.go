package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// strangeGuest is the id of a member that a test itself speaks for.
const strangeGuest = "a guest"

// hostOfStranger returns a leader with one more member, without a vote, that a test speaks for.
func hostOfStranger(t *testing.T) *Node {
	t.Helper()
	leader, _ := roles(t, several(t, 1))
	if err := leader.raft.AddNonvoter(strangeGuest, "127.0.0.1:1", 0, 0).Error(); err != nil {
		t.Fatal(err)
	}
	return leader
}

// guestEnd is the guest's end of a stream.
type guestEnd struct {
	*testing.T
	net.Conn
	in     *bufio.Reader
	served chan struct{} // closed when the leader is done with the stream
}

// visit opens a stream to a leader as a node.
func visit(t *testing.T, leader *Node, node string) *guestEnd {
	t.Helper()
	ours, theirs := net.Pipe()
	ours.SetDeadline(time.Now().Add(fleetPatience))
	g := &guestEnd{T: t, Conn: ours, in: bufio.NewReader(ours), served: make(chan struct{})}
	go func() {
		defer close(g.served)
		leader.host(theirs, peer.Greeting{Node: node})
	}()
	t.Cleanup(func() { ours.Close(); <-g.served })
	return g
}

// say writes frames. The leader may hang up before it has read them all.
func (g *guestEnd) say(frames []byte) {
	g.Helper()
	if _, err := g.Write(frames); err != nil && !errors.Is(err, net.ErrClosed) {
		g.Logf("the leader has hung up: %v", err)
	}
}

// hear returns the next frame that is no ping.
func (g *guestEnd) hear() (frameKind, []byte, error) {
	for {
		var buffer []byte
		kind, body, err := readFrame(g.in, &buffer, func() {})
		if err != nil || kind != framePing {
			return kind, body, err
		}
	}
}

// welcomed says hello, and waits for the welcome.
func (g *guestEnd) welcomed(incarnation uint64) *guestEnd {
	g.Helper()
	g.say(appendNumber(nil, frameHello, incarnation))
	if kind, _, err := g.hear(); err != nil || kind != frameWelcome {
		g.Fatalf("got frame %d and %v, want a welcome", kind, err)
	}
	return g
}

// ended waits until the leader is done with the stream.
func (g *guestEnd) ended() {
	g.Helper()
	if _, _, err := g.hear(); err == nil {
		g.Error("got an answer, want the stream ended")
	}
	select {
	case <-g.served:
	case <-time.After(fleetPatience):
		g.Error("the leader goes on with the stream")
	}
}

// sectionWith is a section of one request.
func sectionWith(incarnation, first uint64, r semaphore.Request) []byte {
	part := fsm.Part{Incarnation: incarnation, First: first, Requests: 1}
	request := fsm.AppendRequest(nil, r)
	return append(fsm.AppendSection(nil, part, semaphore.DefaultLimits(), len(request)), request...)
}

func TestLeaderProposesNothingOfASectionThatIsNotWhole(t *testing.T) {
	leader := hostOfStranger(t)
	create := sectionWith(7, 1, semaphore.Create{Key: "k", Capacity: 1})
	for what, frame := range map[string][]byte{
		"cut short":            appendFrame(nil, frameSection, create[:len(create)-1]),
		"with something after": appendFrame(nil, frameSection, append(bytes.Clone(create), 0)),
		"empty":                appendFrame(nil, frameSection, nil),
		"of another life":      appendFrame(nil, frameSection, sectionWith(8, 1, semaphore.Create{Key: "k", Capacity: 1})),
		"half sent":            appendFrame(nil, frameSection, create)[:9],
	} {
		t.Run(what, func(t *testing.T) {
			g := visit(t, leader, strangeGuest).welcomed(7)
			g.say(frame)
			if what == "half sent" {
				g.Close()
			}
			g.ended()
			reply := leader.Do([]semaphore.Request{semaphore.Inspect{Key: "k"}})[0]
			if !errors.Is(reply.Err, semaphore.ErrNoSemaphore) {
				t.Errorf("got %+v, want nothing done", reply)
			}
		})
	}
}

func TestLeaderWelcomesMembersAlone(t *testing.T) {
	leader := hostOfStranger(t)
	visit(t, leader, strangeGuest).welcomed(7)
	g := visit(t, leader, "nobody")
	g.say(appendNumber(nil, frameHello, 7))
	if kind, _, err := g.hear(); err == nil {
		t.Errorf("got frame %d for who is no member, want the stream ended", kind)
	}
}

// A guest whose stream breaks sends again what it has no answer to; it is carried out once.
func TestRequestThatIsSentAgainOverAnotherStreamIsCarriedOutOnce(t *testing.T) {
	leader := hostOfStranger(t)
	do(t, leader, semaphore.Create{Key: "k", Capacity: 9})
	acquire := func(holder string, first uint64) []byte {
		return appendFrame(nil, frameSection, sectionWith(7, first, semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Lease: time.Hour}))
	}
	g := visit(t, leader, strangeGuest).welcomed(7)
	g.say(acquire("a", 1))
	first := g.answered(1)
	g.Close()
	<-g.served

	do(t, leader, semaphore.Release{Key: "k", Holder: "a"})
	g = visit(t, leader, strangeGuest).welcomed(7)
	g.say(acquire("a", 1))
	g.say(acquire("b", 2))
	second := g.answered(2)

	if first.Holder != "a" || second.Holder != "b" || second.Token <= first.Token {
		t.Errorf("got %+v and %+v, want a granted, then b", first, second)
	}
	if info := inform(t, leader); info.Holders != 1 {
		t.Errorf("got %d holders, want b alone", info.Holders)
	}
}

// answered returns the grant that the next answer tells of, which must be about this section.
func (g *guestEnd) answered(first uint64) *semaphore.Grant {
	g.Helper()
	kind, body, err := g.hear()
	if err != nil || kind != frameAnswer {
		g.Fatalf("got frame %d and %v, want an answer", kind, err)
	}
	s, err := readAnswer(body, 7)
	if err != nil || s.First != first || len(s.Replies) != 1 {
		g.Fatalf("got %+v and %v, want one reply to section %d", s, err, first)
	}
	grant, ok := s.Replies[0].Value.(*semaphore.Grant)
	if !ok {
		g.Fatalf("got %+v, want a grant", s.Replies[0])
	}
	return grant
}

// An answer that is too large for the stream is not sent: the follower applies the log as well.
func TestAnswerTooLargeForTheStreamComesFromTheFollowersOwnLog(t *testing.T) {
	leader, followers := roles(t, several(t, 3))
	keys := make([]semaphore.Request, semaphore.MaxCount)
	for i := range keys {
		name := fmt.Sprintf("%04d", i)
		keys[i] = semaphore.Create{Key: name + strings.Repeat("k", semaphore.MaxName-len(name)), Capacity: 1}
	}
	for from := 0; from < len(keys); from += semaphore.MaxRun {
		leader.Do(keys[from:min(len(keys), from+semaphore.MaxRun)])
	}
	scans := make([]semaphore.Request, 10)
	for i := range scans {
		scans[i] = semaphore.Scan{Count: semaphore.MaxCount}
	}

	replies := followers[0].Do(scans)

	total := 0
	for _, r := range replies {
		page, ok := r.Value.(*semaphore.KeyPage)
		if !ok || len(page.Keys) != len(keys) {
			t.Fatalf("got %T and %v, want all names", r.Value, r.Err)
		}
		for _, key := range page.Keys {
			total += len(key)
		}
	}
	if total < maxAnswer {
		t.Errorf("the answer has %d bytes, want more than the %d that a stream takes", total, maxAnswer)
	}
}
