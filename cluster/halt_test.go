package cluster

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// A stop does not wait for an engine that cannot decide: everybody is told what is known.
func TestHaltAnswersEverybodyWhileNothingCanBeDecided(t *testing.T) {
	n, disk := nodeOnFailingDisk(t, testConfig(t.TempDir()))
	defer closeNode(t, n)
	defer disk.broken.Store(false)
	do(t, n, semaphore.Create{Key: "k", Capacity: 0})
	line := do(t, n, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Wait: time.Hour}).(*semaphore.Waiting)
	disk.broken.Store(true)
	undecided := make(chan semaphore.Reply, 1)
	go func() {
		undecided <- n.Do([]semaphore.Request{semaphore.Acquire{Key: "k", Holder: "b", Permits: 1, Wait: time.Hour}})[0]
	}()
	for !n.queue.knows() {
		runtime.Gosched()
	}
	line.Leave()
	n.Halt()
	if r := <-line.Done; !errors.Is(r.Err, semaphore.ErrShutdown) {
		t.Errorf("who stands in line got %v, want SHUTDOWN", r)
	}
	if r := <-undecided; !errors.Is(r.Err, semaphore.ErrShutdown) && !errors.Is(r.Err, semaphore.Uncertain("b")) {
		t.Errorf("who is not decided got %v, want SHUTDOWN or UNCERTAIN", r)
	}
}

// knows reports whether any run is queued or in flight.
func (q *queue) knows() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.runs)+len(q.flights) > 0
}
