package redisbackend

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/semaphore"
)

const testKey = "gate"

// soon is how long at most what needs no clock may take, in a bubble: a few calls.
const soon = 20 * time.Millisecond

// bubble is a core over books in memory, in a synctest bubble.
type bubble struct {
	*testing.T
	books *fakeBooks
	core  *core
}

// inBubble runs a test with one semaphore of this capacity.
func inBubble(t *testing.T, capacity int64, test func(b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{T: t, books: newFakeBooks()}
		b.core = newCore(b.books, semaphore.DefaultLimits(), 5*time.Second, NewMetrics(prometheus.NewRegistry()))
		b.core.start()
		b.do(semaphore.Create{Key: testKey, Capacity: capacity})
		defer b.close()
		test(b)
	})
}

func (b *bubble) close() {
	b.books.set(nil)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b.core.close(ctx)
	b.books.flying.Wait()
}

// set changes what happens to calls from now on, counted from 1. Those under way arrive before.
func (b *fakeBooks) set(f func(calls int) fault) {
	time.Sleep(soon)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls, b.fault = 0, f
}

// number is how many calls there were since set.
func (b *fakeBooks) number() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// always has the same happen to every call.
func always(f fault) func(int) fault { return func(int) fault { return f } }

// once has it happen to the next call.
func once(f fault) func(int) fault {
	return func(calls int) fault {
		if calls == 1 {
			return f
		}
		return none
	}
}

func (b *bubble) do(r semaphore.Request) semaphore.Reply {
	b.Helper()
	replies := make([]semaphore.Reply, 1)
	b.core.do(testKey, []semaphore.Request{r}, replies)
	return replies[0]
}

func (b *bubble) ask(holder string, wait time.Duration) semaphore.Acquire {
	return semaphore.Acquire{Key: testKey, Holder: holder, Permits: 1, Lease: time.Minute, Wait: wait}
}

func (b *bubble) grant(holder string) *semaphore.Grant {
	b.Helper()
	return b.granted(b.do(b.ask(holder, 0)))
}

func (b *bubble) granted(r semaphore.Reply) *semaphore.Grant {
	b.Helper()
	g, ok := r.Value.(*semaphore.Grant)
	if !ok || r.Err != nil {
		b.Fatalf("got %v, %v, want a grant", r.Value, r.Err)
	}
	return g
}

func (b *bubble) wait(a semaphore.Acquire) *semaphore.Waiting {
	b.Helper()
	r := b.do(a)
	w, ok := r.Value.(*semaphore.Waiting)
	if !ok {
		b.Fatalf("got %v, %v, want to wait", r.Value, r.Err)
	}
	return w
}

func (b *bubble) release(holder string) {
	b.Helper()
	if r := b.do(semaphore.Release{Key: testKey, Holder: holder}); r.Value != semaphore.Number(1) {
		b.Fatalf("release of %s: got %v, %v, want 1", holder, r.Value, r.Err)
	}
}

// reply is how a wait ends that ends by itself soon.
func (b *bubble) reply(w *semaphore.Waiting) semaphore.Reply {
	b.Helper()
	select {
	case r := <-w.Done:
		return r
	case <-time.After(soon):
		b.Fatalf("got no reply after %v, want one by now", soon)
		return semaphore.Reply{}
	}
}

func (b *bubble) unanswered(w *semaphore.Waiting) {
	b.Helper()
	synctest.Wait()
	select {
	case r := <-w.Done:
		b.Fatalf("got %v, %v, want nothing yet", r.Value, r.Err)
	default:
	}
}

func (b *bubble) none(r semaphore.Reply) {
	b.Helper()
	if r.Value != nil || r.Err != nil {
		b.Fatalf("got %v, %v, want no permit", r.Value, r.Err)
	}
}

func (b *bubble) refused(r semaphore.Reply, code semaphore.Code) {
	b.Helper()
	var e *semaphore.Error
	if !errors.As(r.Err, &e) || e.Code != code {
		b.Fatalf("got %v, %v, want %s", r.Value, r.Err, code)
	}
}

// held is how many permits the books say are held.
func (b *bubble) held(want int64) {
	b.Helper()
	r := b.do(semaphore.Inspect{Key: testKey})
	i, ok := r.Value.(*semaphore.Info)
	if !ok || i.InUse != want {
		b.Fatalf("permits held: got %+v, %v, want %d", r.Value, r.Err, want)
	}
}

func name(n int) string { return fmt.Sprintf("h%05d", n) }

// limit changes how long lines may be.
func (b *bubble) limit(one, all int) {
	done := make(chan struct{})
	b.core.loop(testKey).post(func() {
		b.core.office.limits.MaxWaiters, b.core.office.limits.MaxWaitersAll = one, all
		close(done)
	})
	<-done
}
