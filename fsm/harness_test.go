package fsm

import (
	"bytes"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

const testTerm = 7

// node is a state under test, the log that it has applied, and the number of the next ticket.
type node struct {
	t      testing.TB
	s      *State
	limits semaphore.Limits
	wall   int64
	ticket uint64
	from   uint64 // the incarnation that requests come through
	log    [][]byte
	events []Event // of the latest entry
}

func newNode(t testing.TB) *node {
	t.Helper()
	return &node{t: t, s: New(), limits: semaphore.DefaultLimits(), from: 1, ticket: 1}
}

// newBatch begins a batch entry.
func newBatch(term uint64) *Builder { return NewBuilder(term) }

func everybody(uint64) bool { return true }

// apply applies an entry and verifies the invariants. It spoils the bytes that it had applied:
// neither the state nor the outcome may refer to them.
func (n *node) apply(data []byte) Outcome {
	n.t.Helper()
	n.log = append(n.log, data)
	read := bytes.Clone(data)
	out, err := n.s.Apply(read, testTerm, everybody)
	for i := range read {
		read[i] ^= 0xff
	}
	if err != nil {
		n.t.Fatalf("apply: %v", err)
	}
	if err := n.s.Check(); err != nil {
		n.t.Fatalf("check: %v", err)
	}
	n.events = out.Events
	return out
}

// at applies one entry stamped with a time in milliseconds and returns the replies.
func (n *node) at(ms int64, requests ...semaphore.Request) []semaphore.Reply {
	n.t.Helper()
	b := newBatch(testTerm)
	if len(requests) > 0 {
		b.Section(n.from, n.ticket, n.limits)
		n.ticket += uint64(len(requests))
	}
	for _, q := range requests {
		b.Add(AppendRequest(nil, q), 1)
	}
	out := n.apply(b.Seal(Time(ms*1000), n.wall))
	if len(requests) == 0 {
		return nil
	}
	if len(out.Sections) != 1 || len(out.Sections[0].Replies) != len(requests) {
		n.t.Fatalf("got sections %+v, want one of %d replies", out.Sections, len(requests))
	}
	return out.Sections[0].Replies
}

// lose applies a loss.
func (n *node) lose(ms int64, incarnation uint64, grace time.Duration) {
	n.t.Helper()
	b := newBatch(testTerm)
	b.Lost(incarnation, grace)
	n.apply(b.Seal(Time(ms*1000), n.wall))
}

// one returns the only value of replies, which must be no error.
func (n *node) one(replies []semaphore.Reply) any {
	n.t.Helper()
	if len(replies) != 1 || replies[0].Err != nil {
		n.t.Fatalf("got %+v, want one value", replies)
	}
	return replies[0].Value
}

// grant returns the grant in the only reply.
func (n *node) grant(replies []semaphore.Reply) *semaphore.Grant {
	n.t.Helper()
	g, ok := n.one(replies).(*semaphore.Grant)
	if !ok {
		n.t.Fatalf("got %+v, want a grant", replies)
	}
	return g
}

func (n *node) info(ms int64, key string) *semaphore.Info {
	n.t.Helper()
	return n.one(n.at(ms, semaphore.Inspect{Key: key})).(*semaphore.Info)
}

// bytes returns the snapshot.
func snapshotOf(t testing.TB, s *State) []byte {
	t.Helper()
	var b bytes.Buffer
	sn := s.Snapshot()
	defer sn.Release()
	if _, err := sn.WriteTo(&b); err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return b.Bytes()
}

func restored(t testing.TB, data []byte) *State {
	t.Helper()
	s, err := Restore(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	if err := s.Check(); err != nil {
		t.Fatalf("check after restore: %v", err)
	}
	return s
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
