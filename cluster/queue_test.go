package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

func queueOf(t *testing.T, runs ...*run) *queue {
	t.Helper()
	q := newQueue(7, semaphore.DefaultLimits())
	for _, r := range runs {
		if accepted, _ := q.add(r); !accepted {
			t.Fatal("the queue refuses a run")
		}
	}
	return q
}

func runOf(count int, arrived time.Duration) *run {
	var requests []semaphore.Request
	for i := range count {
		requests = append(requests, semaphore.Release{Key: "k", Holder: fmt.Sprint(i)})
	}
	return newRun(requests, arrived)
}

func take(q *queue) *flight { return q.take(max(1, q.term), 0, false, 0) }

func TestEntryCarriesWholeRunsUpToItsCap(t *testing.T) {
	const full = semaphore.MaxRun
	q := queueOf(t, runOf(full, 0), runOf(full-1, 0), runOf(2, 1), runOf(full, 2), runOf(full, 3))
	first, second := take(q), take(q)
	if got := len(first.runs); got != 2 {
		t.Errorf("the first entry carries %d runs, want 2: a third would be one request too many", got)
	}
	if got := len(second.runs); got != 2 {
		t.Errorf("the second entry carries %d runs, want 2: all that is left", got)
	}
	if want := first.first + 2*full - 1; second.first != want {
		t.Errorf("tickets of the second entry begin at %d, want %d", second.first, want)
	}
}

func TestManyRequestsAreSplitOverTwoEntries(t *testing.T) {
	var runs []*run
	for range worthHalving {
		runs = append(runs, runOf(1, 0))
	}
	q := queueOf(t, runs...)
	if got := len(take(q).runs); got != worthHalving/2 {
		t.Errorf("the first entry carries %d requests, want half of %d", got, worthHalving)
	}
	if got := len(take(q).runs); got != worthHalving/2 {
		t.Errorf("the second entry carries %d requests, want the other half of %d", got, worthHalving)
	}
}

func TestSecondEntryInFlightOnlyWhenItIsWorthIt(t *testing.T) {
	q := queueOf(t, runOf(1, 0))
	first := take(q)
	if _, room := q.add(runOf(worthSecond-1, 1)); room {
		t.Error("room is reported for a small second entry")
	}
	if take(q) != nil {
		t.Fatal("a small second entry was taken")
	}
	if _, room := q.add(runOf(1, 2)); !room {
		t.Error("no room is reported for a large second entry")
	}
	if take(q) == nil {
		t.Fatal("a large second entry was not taken")
	}
	q.add(runOf(semaphore.MaxRun, 3))
	if take(q) != nil {
		t.Fatal("a third entry was taken while two are in flight")
	}
	q.applied(first.first)
	if take(q) == nil {
		t.Error("nothing was taken although one entry has landed")
	}
}

func TestLaterOpenQueuesAgainWhatWasNotApplied(t *testing.T) {
	q := queueOf(t, runOf(1, 1), runOf(1, 2))
	old := take(q)
	young := runOf(1, 3)
	q.add(young)
	q.unresolved(old, 0)
	if _, flying := q.lengths(); flying != 0 {
		t.Errorf("%d entries in flight, want 0: an unresolved one does not count", flying)
	}
	q.opened(2, 10)
	f := take(q)
	if len(f.runs) != 3 || f.runs[0] != old.runs[0] || f.runs[1] != old.runs[1] || f.runs[2] != young {
		t.Errorf("taken again: %d runs, want the two of the lost entry before the younger one", len(f.runs))
	}
	if q.applied(old.first) != nil {
		t.Error("the lost entry is still known")
	}
}

// The proposer may hear of the loss only when the log has already gone past it.
func TestFlightOfATermThatIsOverIsQueuedAgain(t *testing.T) {
	q := queueOf(t, runOf(1, 1))
	take(q)
	q.opened(2, 10)
	late := q.take(1, 0, false, 0)
	if late != nil {
		t.Fatalf("taken for a term that is over: %+v", late)
	}
	q = queueOf(t, runOf(1, 1))
	q.term = 1
	old := take(q)
	q.term = 2
	q.unresolved(old, 10)
	if f := take(q); f == nil || f.runs[0] != old.runs[0] {
		t.Errorf("taken again: %+v, want the run of the flight that cannot be applied any more", f)
	}
}

func TestRunProposedAgainWaitsOnlyForWhatIsLeft(t *testing.T) {
	wait := newRun([]semaphore.Request{semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Wait: 3 * time.Second}}, time.Second)
	q := queueOf(t, wait)
	q.again(take(q), 2*time.Second)
	q.take(1, 2*time.Second, false, 0)
	want := fsm.AppendRequest(nil, semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Wait: 2 * time.Second})
	if string(wait.encoded) != string(want) {
		t.Errorf("proposed again as %q, want %q", wait.encoded, want)
	}
}

func TestCallersAreToldInTime(t *testing.T) {
	const hold = 5 * time.Second
	waiting := []semaphore.Request{semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Wait: time.Second}}
	for _, c := range []struct {
		name     string
		requests []semaphore.Request
		proposed bool
		by       time.Duration
		want     error
	}{
		{"never proposed", runOf(1, 0).requests, false, hold, semaphore.ErrDown},
		{"in flight", runOf(1, 0).requests, true, hold, semaphore.Uncertain("0")},
		{"never proposed, with WAIT", waiting, false, 2 * time.Second, semaphore.ErrDown},
		{"in flight, with WAIT", waiting, true, 2 * time.Second, semaphore.Uncertain("h")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(c.requests, 0)
			q := queueOf(t, r)
			if c.proposed {
				take(q)
			}
			q.expire(c.by-200*time.Millisecond, hold)
			if got := r.state.Load(); got != pending {
				t.Fatalf("state %d before its time, want pending", got)
			}
			q.expire(c.by, hold)
			<-r.settled
			replies := failures(c.requests, r.failure)
			if got := replies[0].Err; got.Error() != c.want.Error() {
				t.Errorf("told %q, want %q", got, c.want)
			}
			if !c.proposed && take(q) != nil {
				t.Error("what was said to be not applied is proposed after all")
			}
		})
	}
}

func TestClosedQueueRefusesAndAnswers(t *testing.T) {
	flying, waiting := runOf(1, 0), runOf(1, 1)
	q := queueOf(t, flying)
	take(q)
	q.add(waiting)
	q.close()
	<-flying.settled
	<-waiting.settled
	if flying.failure != unknown || waiting.failure != stopped {
		t.Errorf("in flight %v, waiting %v; want unknown and stopped", flying.failure, waiting.failure)
	}
	if accepted, _ := q.add(runOf(1, 2)); accepted {
		t.Error("a closed queue accepts a run")
	}
}

// Behind an installed snapshot nothing in flight can be told to be lost: it may be part of it. The leader
// may still tell.
func TestFlightUnderAnInstalledSnapshotIsUnknownUnlessTheLeaderTells(t *testing.T) {
	r, own := runOf(1, 0), runOf(1, 0)
	own.state.Store(internal)
	q := queueOf(t, r, own)
	f := take(q)
	q.skipped(1)
	if got := r.state.Load(); got != pending {
		t.Fatalf("got state %d, want the caller to wait for the leader's word", got)
	}
	again := take(q)
	if again == nil || len(again.runs) != 1 || &again.runs[0].requests[0] != &own.requests[0] {
		t.Fatalf("taken again: %+v, want what the node itself asked for", again)
	}
	q.opened(f.term+1, 2)
	<-r.settled
	if r.failure != unknown {
		t.Errorf("told %v, want unknown", r.failure)
	}
}

func TestFlightUnderAnInstalledSnapshotIsAnsweredByTheLeader(t *testing.T) {
	q := queueOf(t, runOf(1, 0))
	f := take(q)
	q.skipped(1)
	if got := q.applied(f.first); got != f {
		t.Errorf("got %+v, want the flight to be answered", got)
	}
}

func TestRefusedSectionIsQueuedAgain(t *testing.T) {
	q := queueOf(t, runOf(1, 1))
	f := take(q)
	q.refused(f.term+1, f.first, 2)
	if again := take(q); again != nil {
		t.Fatalf("taken again on the word of a leader that it was not sent to: %+v", again)
	}
	q.refused(f.term, f.first, 2)
	if again := take(q); again == nil || again.runs[0] != f.runs[0] {
		t.Errorf("taken again: %+v, want the run", again)
	}
}

// A snapshot may hide the Open that would have ended it.
func TestFlightUnderASnapshotEndsWithTheNextLeadership(t *testing.T) {
	r := runOf(1, 1)
	q := queueOf(t, r)
	f := take(q)
	q.skipped(2)
	if out := q.outstanding(f.term + 1); len(out) != 0 {
		t.Errorf("sent again: %+v", out)
	}
	<-r.settled
	if r.failure != unknown {
		t.Errorf("told %v, want unknown", r.failure)
	}
}

func TestAnswerOfAnotherLengthIsNotForTheFlight(t *testing.T) {
	q := queueOf(t, runOf(2, 1))
	f := take(q)
	if !q.expects(f.first, 2) || q.expects(f.first, 1) || !q.expects(f.first+100, 7) {
		t.Error("got another length expected than that of the flight")
	}
}
