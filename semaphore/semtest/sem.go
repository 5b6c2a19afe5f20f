package semtest

import (
	"errors"
	"fmt"
	"time"

	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
)

// patience is how long a case waits for what must happen. It is far beyond what an engine needs.
const patience = 20 * time.Second

// long is a lease or a wait that no case sees the end of.
const long = 5 * time.Minute

// sem is one semaphore under test, as its clients use it.
type sem struct {
	*testing.T
	backend semaphore.Backend
	bounds  Bounds
	key     string
}

// do carries out one request that cannot wait in line.
func (s *sem) do(r semaphore.Request) semaphore.Reply {
	s.Helper()
	replies := s.backend.Do([]semaphore.Request{r})
	if len(replies) != 1 {
		s.Fatalf("%T got %d replies, want 1", r, len(replies))
	}
	return replies[0]
}

// value is the value of a reply that must not be an error.
func value[V any](s *sem, r semaphore.Request) V {
	s.Helper()
	reply := s.do(r)
	v, ok := reply.Value.(V)
	if reply.Err != nil || !ok {
		s.Fatalf("%#v got %v, %v, want a %T", r, reply.Value, reply.Err, v)
	}
	return v
}

// refused carries out a request that must be answered with an error of this code.
func (s *sem) refused(code semaphore.Code, r semaphore.Request) {
	s.Helper()
	s.refusal(code, s.do(r))
}

func (s *sem) refusal(code semaphore.Code, reply semaphore.Reply) {
	s.Helper()
	var refused *semaphore.Error
	if !errors.As(reply.Err, &refused) || refused.Code != code {
		s.Fatalf("got %v, %v, want a refusal %s", reply.Value, reply.Err, code)
	}
	if reply.Value != nil {
		s.Fatalf("got the value %v beside %v, want none", reply.Value, reply.Err)
	}
}

// create makes the semaphore.
func (s *sem) create(capacity int64, settings ...semaphore.Settings) {
	s.Helper()
	r := semaphore.Create{Key: s.key, Capacity: capacity}
	for _, given := range settings {
		r.Settings = given
	}
	s.confirmed(r)
}

// confirmed carries out a Create that must succeed.
func (s *sem) confirmed(r semaphore.Create) {
	s.Helper()
	if reply := s.do(r); reply.Err != nil || reply.Value != nil {
		s.Fatalf("%+v got %v, %v, want success", r, reply.Value, reply.Err)
	}
}

// ask completes an Acquire: on this semaphore, one permit unless it says more.
func (s *sem) ask(r semaphore.Acquire) semaphore.Acquire {
	r.Key = s.key
	r.Permits = max(r.Permits, 1)
	return r
}

// grant carries out an Acquire that must be granted at once.
func (s *sem) grant(r semaphore.Acquire) *semaphore.Grant {
	s.Helper()
	return s.granted(s.do(s.ask(r)), s.ask(r))
}

// granted checks that a reply is a well-formed grant to this request.
func (s *sem) granted(reply semaphore.Reply, r semaphore.Acquire) *semaphore.Grant {
	s.Helper()
	g, ok := reply.Value.(*semaphore.Grant)
	if reply.Err != nil || !ok {
		s.Fatalf("%+v got %v, %v, want a grant", r, reply.Value, reply.Err)
	}
	equal(s, "holder", g.Holder, r.Holder)
	equal(s, "permits by slots", slotCount(g.Slots), r.Permits)
	if g.Token <= 0 || g.Token >= 1<<53 {
		s.Fatalf("token %d, want one in 1 … 2^53-1", g.Token)
	}
	if g.Lease <= 0 && g.Lease != semaphore.Persist {
		s.Fatalf("lease %v, want some left", g.Lease)
	}
	return g
}

// none carries out an Acquire that must be answered at once with no permit.
func (s *sem) none(r semaphore.Acquire) {
	s.Helper()
	if reply := s.do(s.ask(r)); reply.Value != nil || reply.Err != nil {
		s.Fatalf("%+v got %v, %v, want no permit", r, reply.Value, reply.Err)
	}
}

func (s *sem) release(holder string) int64 {
	s.Helper()
	return s.number(semaphore.Release{Key: s.key, Holder: holder})
}

func (s *sem) renew(holder string, lease time.Duration) int64 {
	s.Helper()
	return s.number(semaphore.Renew{Key: s.key, Holder: holder, Lease: lease})
}

func (s *sem) cancel(holder string) int64 {
	s.Helper()
	return s.number(semaphore.Cancel{Key: s.key, Holder: holder})
}

func (s *sem) check(g *semaphore.Grant) int64 {
	s.Helper()
	return s.number(semaphore.Check{Key: s.key, Holder: g.Holder, Token: g.Token})
}

func (s *sem) resize(capacity int64) semaphore.Usage {
	s.Helper()
	return value[semaphore.Usage](s, semaphore.Resize{Key: s.key, Capacity: capacity})
}

func (s *sem) number(r semaphore.Request) int64 {
	s.Helper()
	return int64(value[semaphore.Number](s, r))
}

func (s *sem) info() *semaphore.Info {
	s.Helper()
	return value[*semaphore.Info](s, semaphore.Inspect{Key: s.key})
}

// books checks how many permits are in use, are available, and are waited for by how many.
func (s *sem) books(inUse, available, waiters int64) {
	s.Helper()
	if wrong := s.misbooked(inUse, available, waiters); wrong != nil {
		s.Fatal(wrong)
	}
}

// booksSoon is books for what follows a request that does not wait for its outcome.
func (s *sem) booksSoon(inUse, available, waiters int64) {
	s.Helper()
	trial.Await(s, func() error { return s.misbooked(inUse, available, waiters) })
}

func (s *sem) misbooked(inUse, available, waiters int64) error {
	s.Helper()
	i := s.info()
	got := [3]int64{i.InUse, i.Available, i.Waiters}
	if want := [3]int64{inUse, available, waiters}; got != want {
		return fmt.Errorf("in use, available, waiters: got %v, want %v", got, want)
	}
	return nil
}

// lapses waits for the end of a grant's lease, which must not come before it has lasted since then.
func (s *sem) lapses(g *semaphore.Grant, since time.Time, lasted time.Duration) {
	s.Helper()
	trial.Await(s, func() error {
		if s.check(g) == 1 {
			return fmt.Errorf("%s still holds after %v of a lease of %v", g.Holder, time.Since(since), lasted)
		}
		return nil
	})
	s.notBefore(since, lasted)
}

// notBefore checks that what just happened did not come early.
func (s *sem) notBefore(since time.Time, lasted time.Duration) {
	s.Helper()
	if got := time.Since(since); got < lasted {
		s.Fatalf("came after %v, want not before %v", got, lasted)
	}
}

// pass lets time go by on the engine's clock.
func (s *sem) pass(d time.Duration) {
	s.Helper()
	clock := s.beside("clock")
	clock.confirmed(semaphore.Create{Key: clock.key, Capacity: 1, IfAbsent: true})
	began := time.Now()
	clock.lapses(clock.grant(semaphore.Acquire{Holder: "tick", Lease: d}), began, d)
}

func equal[V comparable](s *sem, what string, got, want V) {
	s.Helper()
	if got != want {
		s.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func slotCount(ranges []semaphore.Range) int64 {
	n := int64(0)
	for _, r := range ranges {
		n += r.Last - r.First + 1
	}
	return n
}
