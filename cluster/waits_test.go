package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// submissions are what the parts of a node ask the log to do on its own behalf.
type submissions struct{ c chan semaphore.Request }

func newSubmissions() submissions                { return submissions{make(chan semaphore.Request, 100)} }
func (s submissions) submit(r semaphore.Request) { s.c <- r }

func (s submissions) want(t *testing.T, want semaphore.Request) {
	t.Helper()
	select {
	case got := <-s.c:
		if got != want {
			t.Errorf("submitted %#v, want %#v", got, want)
		}
	default:
		t.Errorf("nothing was submitted, want %#v", want)
	}
}

func (s submissions) again(w *wait, q fsm.Rejoin) *run {
	r := newRun([]semaphore.Request{q}, 0)
	r.again = w
	return r
}

func (s submissions) rejoin(r *run) { s.submit(r.requests[0]) }

func (s submissions) none(t *testing.T) {
	t.Helper()
	select {
	case got := <-s.c:
		t.Errorf("submitted %#v, want nothing", got)
	default:
	}
}

func testWaits(s submissions) *waits {
	return newWaits(s.submit, s.again, s.rejoin, SystemClock().Monotonic, time.Second, NewMetrics(prometheus.NewRegistry()))
}

var (
	theTicket = semaphore.Ticket{Incarnation: 7, Number: 1}
	theWaiter = semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Wait: time.Second}
	theLeave  = fsm.Leave{Key: "k", Holder: "h", Ticket: theTicket}
	theGrant  = &semaphore.Grant{Holder: "h", Token: 5, Ticket: theTicket}
	theReturn = fsm.GiveBack{Key: "k", Holder: "h", Token: 5, Ticket: theTicket}
)

func TestWaitEndsAsTheLogSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubmissions()
		ws := testWaits(s)
		w := ws.join(theTicket, theWaiter, time.Second)
		ws.end(fsm.Event{Ticket: theTicket, Reply: semaphore.Reply{Value: theGrant}})
		if got := <-w.Done; got.Value != theGrant {
			t.Errorf("got %v, want the grant", got)
		}
		time.Sleep(time.Minute)
		s.none(t)
		if n := ws.length(); n != 0 {
			t.Errorf("%d waits are left, want 0", n)
		}
	})
}

func TestOverdueWaitLeavesTheLineAndIsUncertainInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubmissions()
		ws := testWaits(s)
		began := time.Now()
		w := ws.join(theTicket, theWaiter, theWaiter.Wait)
		time.Sleep(theWaiter.Wait + leaveAfter - time.Millisecond)
		s.none(t)
		got := <-w.Done
		if took := time.Since(began); took < theWaiter.Wait || took > theWaiter.Wait+time.Second {
			t.Errorf("answered after %v of WAIT %v", took, theWaiter.Wait)
		}
		if got.Err == nil || got.Err.(*semaphore.Error).Code != semaphore.CodeUncertain {
			t.Errorf("got %v, want UNCERTAIN", got)
		}
		s.want(t, theLeave)

		// The grant turns up after all: its holder may come back for it within the grace.
		ws.end(fsm.Event{Ticket: theTicket, Reply: semaphore.Reply{Value: theGrant}})
		s.none(t)
		time.Sleep(time.Second)
		synctest.Wait()
		s.want(t, theReturn)
	})
}

func TestRequestThatJoinedForNobodyLeavesAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubmissions()
		ws := testWaits(s)
		ws.joinDeaf(theTicket, theWaiter)
		s.none(t)
		time.Sleep(time.Second)
		synctest.Wait()
		s.want(t, theLeave)
		ws.end(fsm.Event{Ticket: theTicket})
		if n := ws.length(); n != 0 {
			t.Errorf("%d waits are left, want 0", n)
		}
	})
}

func TestClosingEndsEveryWaitAndForgetsCleanUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubmissions()
		ws := testWaits(s)
		w := ws.join(theTicket, theWaiter, time.Minute)
		ws.later(theReturn)
		ws.close()
		if got := <-w.Done; got.Err != semaphore.ErrShutdown {
			t.Errorf("got %v, want %v", got.Err, semaphore.ErrShutdown)
		}
		late := ws.join(semaphore.Ticket{Incarnation: 7, Number: 2}, theWaiter, time.Minute)
		if got := <-late.Done; got.Err != semaphore.ErrShutdown {
			t.Errorf("after closing got %v, want %v", got.Err, semaphore.ErrShutdown)
		}
		time.Sleep(time.Hour)
		s.none(t)
	})
}
