package redismode

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/redisd"
)

// story is what happens to three permits, told with its times.
type story struct {
	*testing.T
	redis *redisd.Server
	node  *node.Node
	ours  *client
	began time.Time
}

// tell prints a line of the timeline, with what is free and what is held.
func (s *story) tell(format string, args ...any) {
	s.Helper()
	b := books(s.T, s.redis)
	s.Logf("%5d ms  free %d, held %d  %s", time.Since(s.began).Milliseconds(), b[0], b[1], fmt.Sprintf(format, args...))
}

// pod is a client by hand that has nothing else to do.
func (s *story) pod() byHand {
	s.Helper()
	return newByHand(s.T, s.redis)
}

// takes has a pod take a permit by hand.
func (s *story) takes(holder string, lease time.Duration) {
	s.Helper()
	if got, err := s.pod().acquire(holder, patience, lease); !got || err != nil {
		s.Fatalf("%s: got %v, %v, want a permit", holder, got, err)
	}
}

// releases has a pod give one back by hand.
func (s *story) releases(holder string, want int64) {
	s.Helper()
	if got, err := s.pod().release(holder); got != want || err != nil {
		s.Errorf("release of %s by hand: got %v, %v, want %d", holder, got, err, want)
	}
}

// TestTheStoryOfThreePermits is what the recipe by hand goes through in a cluster of pods, with us on
// the same keys from its second chapter on, and at last what no recipe can do.
func TestTheStoryOfThreePermits(t *testing.T) {
	t.Parallel()
	s := &story{T: t, redis: redisd.Run(t), began: time.Now()}
	for range 3 {
		ask(t, s.redis, "RPUSH", permits, "permit")
	}
	s.tell("a List with three permits, made by hand")
	s.threePodsAndAFourth()
	s.adopted()
	s.doubleRelease()
	s.crashedPods()
	s.popWithoutWrite()
	s.workers()
	s.straggler()
}

func (s *story) threePodsAndAFourth() {
	for n := range 3 {
		s.takes(fmt.Sprint("pod-", n), time.Minute)
	}
	s.tell("three pods have taken them by hand")
	began := time.Now()
	got, err := s.pod().acquire("pod-3", 2*time.Second, time.Minute)
	if took := time.Since(began); got || err != nil || took < 1900*time.Millisecond {
		s.Errorf("fourth pod: got %v, %v after %v, want null after 2 s", got, err, took)
	}
	s.tell("a fourth has waited for 2 s and got null")
}

// adopted starts a semserver on these keys, which touches neither.
func (s *story) adopted() {
	s.node = serve(s.T, s.redis, "--reconcile-every", "200ms")
	s.ours = dial(s.T, s.node.Addr)
	s.ours.want("OK", "SEM.CREATE", "k", 3)
	if i := s.ours.info("k"); i["in_use"] != 3 || i["holders"] != 3 || i["available"] != 0 {
		s.Errorf("adopted: got %v, want three holders of three permits", i)
	}
	began := time.Now()
	s.ours.want("<nil>", "SEM.ACQUIRE", "k", "HOLDER", "ours", "WAIT", 2000)
	if took := time.Since(began); took < 2*time.Second {
		s.Errorf("fourth pod through us: null after %v, want after 2 s", took)
	}
	balances(s.T, s.redis, 0, 3)
	s.tell("a semserver has taken the semaphore over as it is; a client of its has waited for 2 s and got null")
}

func (s *story) doubleRelease() {
	s.releases("pod-0", 1)
	s.releases("pod-0", 0)
	balances(s.T, s.redis, 1, 2)
	s.takes("pod-0", time.Minute)
	s.releases("pod-0", 1)
	s.ours.want(0, "SEM.RELEASE", "k", "pod-0")
	s.ours.want(1, "SEM.RELEASE", "k", "pod-1")
	s.releases("pod-1", 0)
	balances(s.T, s.redis, 2, 1)
	s.tell("two were released twice, by hand and through us, and counted once")
}

// crashedPods are compensated by hand, by a waiter of ours, and by nobody who asks for it.
func (s *story) crashedPods() {
	s.takes("crashed", 300*time.Millisecond)
	trial.Await(s.T, func() error {
		if _, err := s.pod().compensate(3); err != nil {
			return err
		}
		if got := books(s.T, s.redis); got != [2]int64{2, 1} {
			return fmt.Errorf("compensated: got %v, want 2 free and 1 held", got)
		}
		return nil
	})
	s.releases("crashed", 0)
	s.tell("a pod has crashed; its lease has ended, its permit is back, and a late release counts for nothing")
	s.takes("crashed-1", time.Second)
	s.takes("crashed-2", time.Second)
	g := s.ours.acquire("k", "HOLDER", "ours", "WAIT", patience.Milliseconds(), "LEASE", longLease)
	s.tell("two more have crashed; a client of ours waited for the end of a lease, and has token %d", g.token)
	s.ours.want(0, "SEM.RELEASE", "k", "crashed-1")
	s.ours.want(1, "SEM.RELEASE", "k", "ours")
	balances(s.T, s.redis, 2, 1)
	s.tell("nobody waited for the other one's permit, which is back too")
}

// popWithoutWrite loses a permit, which is restored unasked, after the grace and no sooner, and another
// one, which is restored at once when somebody says so.
func (s *story) popWithoutWrite() {
	const grace = 3 * time.Second // the default
	began := time.Now()
	if got, err := s.pod().pop(patience); !got || err != nil {
		s.Fatalf("BRPOP: got %v, %v, want a permit", got, err)
	}
	balances(s.T, s.redis, 1, 1)
	s.tell("a pod has died between BRPOP and ZADD")
	balances(s.T, s.redis, 2, 1)
	if took := time.Since(began); took < grace {
		s.Errorf("restored after %v, want not before the grace of %v", took, grace)
	}
	s.tell("its permit was restored")
	if got, err := s.pod().pop(patience); !got || err != nil {
		s.Fatalf("BRPOP: got %v, %v, want a permit", got, err)
	}
	s.ours.want(1, "SEM.RECONCILE", "k")
	s.ours.want(0, "SEM.RECONCILE", "k")
	s.releases("pod-2", 1)
	balances(s.T, s.redis, 3, 0)
	s.tell("so was another's, at once, by SEM.RECONCILE; and everybody is gone")
}

// workers are half by hand and half ours.
func (s *story) workers() {
	held := &room{T: s.T, capacity: 3}
	var all sync.WaitGroup
	for n := range 20 {
		name := fmt.Sprint("worker-", n, ".")
		if n%2 == 0 {
			pod := s.pod()
			all.Go(func() { s.report(rounds(held, name, pod.acquireInTime, pod.releaseOnce)) })
			continue
		}
		c := dial(s.T, s.node.Addr).Conn
		all.Go(func() {
			s.report(rounds(held, name,
				func(holder string) error { _, err := acquire(c, holder); return err },
				func(holder string) error { return release(c, holder) }))
		})
	}
	all.Wait()
	balances(s.T, s.redis, 3, 0)
	s.tell("20 workers, half of them by hand, have worked 50 times each, at most %d at once", held.most.Load())
}

func (s *story) report(err error) {
	if err != nil {
		s.Error(err)
	}
}

// rounds are 50 tasks of a worker.
func rounds(held *room, name string, acquire, release func(holder string) error) error {
	for n := range 50 {
		holder := fmt.Sprint(name, n)
		if err := acquire(holder); err != nil {
			return err
		}
		held.enter()
		<-time.After(time.Millisecond) // the task
		held.leave()
		if err := release(holder); err != nil {
			return err
		}
	}
	return nil
}

// acquireInTime takes a permit, as long as that takes.
func (c byHand) acquireInTime(holder string) error {
	got, err := c.acquire(holder, patience, time.Minute)
	if err == nil && !got {
		err = fmt.Errorf("%s by hand: got none within %v", holder, patience)
	}
	return err
}

// releaseOnce gives one back, which must be there.
func (c byHand) releaseOnce(holder string) error {
	if got, err := c.release(holder); got != int64(1) || err != nil {
		return fmt.Errorf("release of %s by hand: got %v, %v, want 1", holder, got, err)
	}
	return nil
}

// straggler holds a lease of 500 ms for a task of 1,500 ms.
func (s *story) straggler() {
	table := newResource(3)
	for _, holder := range []string{"lasting-1", "lasting-2"} {
		if err := table.write(s.ours.acquire("k", "HOLDER", holder, "LEASE", longLease, "SLOTS")); err != nil {
			s.Errorf("write of %s: got %v, want none", holder, err)
		}
	}
	taskEnds := time.After(1500 * time.Millisecond)
	slow := s.ours.acquire("k", "HOLDER", "slow", "LEASE", 500, "SLOTS")
	if err := table.write(slow); err != nil {
		s.Errorf("write under a live lease: got %v, want none", err)
	}
	s.tell("one has a lease of 500 ms for a task of 1,500 ms: token %d, slot %d", slow.token, slow.slot)
	next := s.ours.acquire("k", "HOLDER", "next", "LEASE", longLease, "WAIT", patience.Milliseconds(), "SLOTS")
	if next.slot != slow.slot || next.token <= slow.token {
		s.Errorf("after the lease: got %+v, want slot %d and a token above %d", next, slow.slot, slow.token)
	}
	s.tell("its lease has ended, and another works in its slot: token %d", next.token)
	if err := table.write(next); err != nil {
		s.Errorf("write of the second holder: got %v, want none", err)
	}
	<-taskEnds
	if err := table.write(slow); !errors.Is(err, errFenced) {
		s.Errorf("write of the straggler: got %v, want %v", err, errFenced)
	}
	s.tell("the straggler wakes up and writes, and the resource refuses: %v", errFenced)
	s.ours.want(0, "SEM.CHECK", "k", "slow", slow.token)
	s.ours.want(0, "SEM.RELEASE", "k", "slow", "TOKEN", slow.token)
	if err := table.write(next); err != nil {
		s.Errorf("write of the second holder after that: got %v, want none", err)
	}
}
