package fsm

import (
	"errors"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// late returns a node on which a holds the only permit, b's wait ends at 50 ms, c waits behind b, and
// nothing that falls due is processed. It returns b's ticket as well.
func late(t *testing.T) (n *node, b semaphore.Ticket) {
	t.Helper()
	n = newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	b = semaphore.Ticket{Incarnation: n.from, Number: n.ticket}
	wantInLine(t, n.at(0, acquire("b", 1, 0, ms(50))))
	wantInLine(t, n.at(0, acquire("c", 1, 0, time.Minute)))
	small(n.s, 0, 0)
	return n, b
}

// wantTimedOut fails unless the latest entry answered that ticket, and only that one, with nil.
func (n *node) wantTimedOut(ticket semaphore.Ticket) {
	n.t.Helper()
	if len(n.events) != 1 || n.events[0] != (Event{ticket, semaphore.Reply{}}) {
		n.t.Fatalf("got %+v, want nil for %+v", n.events, ticket)
	}
}

func TestRepeatAfterTheWaitHasEndedJoinsAtTheEnd(t *testing.T) {
	n, b := late(t)
	wantInLine(t, n.at(60, acquire("b", 1, 0, time.Minute)))
	n.wantTimedOut(b)
	info := n.info(60, "k")
	if info.Waiters != 2 || info.Counters.WaitTimeouts != 1 || info.Counters.WaitTotal != ms(50) {
		t.Errorf("got %+v, want c and the new b waiting, and one timeout after 50 ms", info)
	}
	if got := n.s.Stats().TimedOut; got != 1 {
		t.Errorf("got %d timed out, want 1", got)
	}
	small(n.s, portion, allowance)
	n.at(61, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "c" {
		t.Errorf("got grants to %v, want c", got)
	}
}

func TestRepeatAfterTheWaitHasEndedMayAskForOtherwise(t *testing.T) {
	n, b := late(t)
	wantCode(t, n.at(60, acquire("b", 2, 0, time.Minute)), semaphore.CodeTooMany)
	n.wantTimedOut(b)
	n, b = late(t)
	wantNil(t, n.at(60, acquire("b", 1, 0, 0)))
	n.wantTimedOut(b)
	if got := n.info(60, "k").Counters.Refused; got != 1 {
		t.Errorf("got %d refused, want 1", got)
	}
}

func TestRepeatBeforeTheWaitHasEndedKeepsItsPlaceInABacklog(t *testing.T) {
	n, b := late(t)
	wantInLine(t, n.at(49, acquire("b", 1, 0, time.Minute)))
	if len(n.events) != 1 || n.events[0].Ticket != b || !errors.Is(n.events[0].Reply.Err, semaphore.ErrSuperseded) {
		t.Fatalf("got %+v, want SUPERSEDED for %+v", n.events, b)
	}
	small(n.s, portion, allowance)
	n.at(61, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want b", got)
	}
}

// TestLineGoesOnBehindAWaiterThatLeftToAskAnew has the large request of the head out of the way.
func TestLineGoesOnBehindAWaiterThatLeftToAskAnew(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 2})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	wantInLine(t, n.at(0, acquire("large", 2, 0, ms(50))))
	wantInLine(t, n.at(0, acquire("c", 1, 0, time.Minute)))
	small(n.s, 0, 0)
	wantInLine(t, n.at(60, acquire("large", 2, 0, time.Minute)))
	if next, ok := n.s.Next(); !ok || next > n.s.Now() {
		t.Fatalf("got next %v, want the line to go on at once", next)
	}
	small(n.s, portion, allowance)
	n.at(60)
	if got := n.grantees(); len(got) != 1 || got[0] != "c" {
		t.Errorf("got grants to %v, want c", got)
	}
}

func TestOrphanWhoseGraceHasEndedIsNotAdopted(t *testing.T) {
	n, _ := late(t)
	n.from = 2
	n.lose(0, 1, ms(30))
	wantInLine(t, n.at(40, acquire("b", 1, 0, time.Minute)))
	small(n.s, portion, allowance)
	n.at(41, release("a"))
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want the new b", got)
	}
	if got := n.info(41, "k").Counters.WaitTimeouts; got != 2 {
		t.Errorf("got %d timeouts, want the old b and c", got)
	}
}

// TestWaitIsNotRefusedWhereEndedLeasesMakeRoom asks where no line may grow any more, and the permits
// are those of leases that are over and yet to be processed.
func TestWaitIsNotRefusedWhereEndedLeasesMakeRoom(t *testing.T) {
	for name, limit := range map[string]func(l *semaphore.Limits){
		"max-waiters": func(l *semaphore.Limits) { l.MaxWaiters = 0 },
		"all lines":   func(l *semaphore.Limits) { l.MaxWaitersAll = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.at(0, semaphore.Create{Key: "other", Capacity: 0}, semaphore.Create{Key: "k", Capacity: 3})
			wantInLine(t, n.at(0, semaphore.Acquire{Key: "other", Holder: "w", Permits: 1, Wait: time.Minute}))
			n.grant(n.at(0, acquire("a", 1, ms(50), 0)))
			n.grant(n.at(0, acquire("b", 2, ms(50), 0)))
			limit(&n.limits)
			small(n.s, 0, 0)
			wantCode(t, n.at(49, acquire("c", 1, 0, time.Minute)), semaphore.CodeQueueFull)
			n.grant(n.at(60, acquire("c", 3, 0, time.Minute)))
			wantCode(t, n.at(60, acquire("d", 1, 0, time.Minute)), semaphore.CodeQueueFull)
		})
	}
}

// TestWaitInABacklogJoinsTheLine where it may: the entry has done its portion.
func TestWaitInABacklogJoinsTheLine(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, ms(50), 0)))
	small(n.s, 0, 0)
	wantInLine(t, n.at(60, acquire("c", 1, 0, time.Minute)))
	small(n.s, portion, allowance)
	n.at(60)
	if got := n.grantees(); len(got) != 1 || got[0] != "c" {
		t.Errorf("got grants to %v, want c", got)
	}
}
