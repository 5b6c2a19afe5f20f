package semtest

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// waiter is a request that stands in line.
type waiter struct {
	s       *sem
	request semaphore.Acquire
	*semaphore.Waiting
}

// wait carries out an Acquire that must join the line; it waits long unless it says otherwise.
func (s *sem) wait(r semaphore.Acquire) *waiter {
	s.Helper()
	if r.Wait == 0 {
		r.Wait = long
	}
	return s.inLine(s.do(s.ask(r)), s.ask(r))
}

// inLine checks that a reply says that the request waits.
func (s *sem) inLine(reply semaphore.Reply, r semaphore.Acquire) *waiter {
	s.Helper()
	w, ok := reply.Value.(*semaphore.Waiting)
	if reply.Err != nil || !ok {
		s.Fatalf("%+v got %v, %v, want to wait", r, reply.Value, reply.Err)
	}
	return &waiter{s: s, request: r, Waiting: w}
}

// outcome is the one reply that ends the wait.
func (w *waiter) outcome() semaphore.Reply {
	w.s.Helper()
	select {
	case reply, ok := <-w.Done:
		if !ok {
			w.s.Fatalf("%s got no reply, want one", w.request.Holder)
		}
		return reply
	case <-time.After(patience):
		w.s.Fatalf("%s still waits after %v", w.request.Holder, patience)
		return semaphore.Reply{}
	}
}

// granted checks that the wait ends with a grant.
func (w *waiter) granted() *semaphore.Grant {
	w.s.Helper()
	g := w.s.granted(w.outcome(), w.request)
	equal(w.s, "replayed", g.Replayed, false)
	return g
}

// none checks that the wait ends with no permit.
func (w *waiter) none() {
	w.s.Helper()
	if reply := w.outcome(); reply.Value != nil || reply.Err != nil {
		w.s.Fatalf("%s got %v, %v, want no permit", w.request.Holder, reply.Value, reply.Err)
	}
}

// refused checks that the wait ends with an error of this code.
func (w *waiter) refused(code semaphore.Code) {
	w.s.Helper()
	w.s.refusal(code, w.outcome())
}

// unanswered checks that nothing more has come. The books say whether it still stands in line.
func (w *waiter) unanswered() {
	w.s.Helper()
	select {
	case reply, ok := <-w.Done:
		if ok {
			w.s.Fatalf("%s got %v, %v, want nothing", w.request.Holder, reply.Value, reply.Err)
		}
	default:
	}
}
