package redisbackend

import (
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// wait joins the line of k.
func wait(t testing.TB, e *Engine, holder string, d time.Duration) *semaphore.Waiting {
	t.Helper()
	r := one(e, semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Wait: d})
	w, ok := r.Value.(*semaphore.Waiting)
	if !ok {
		t.Fatalf("got %v, %v, want to wait", r.Value, r.Err)
	}
	return w
}

// granted is the grant by which a wait ends.
func granted(t testing.TB, w *semaphore.Waiting) *semaphore.Grant {
	t.Helper()
	select {
	case r := <-w.Done:
		g, ok := r.Value.(*semaphore.Grant)
		if !ok {
			t.Fatalf("got %v, %v, want a grant", r.Value, r.Err)
		}
		return g
	case <-time.After(patience):
		t.Fatalf("got nothing after %v, want a grant", patience)
		return nil
	}
}

func holdAndWait(t testing.TB, e *Engine) *semaphore.Waiting {
	t.Helper()
	create(t, e, "k", 1)
	if r := one(e, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour}); r.Value == nil {
		t.Fatalf("got %v, want a grant", r.Err)
	}
	return wait(t, e, "b", time.Minute)
}

func release(t testing.TB, e *Engine, holder string) {
	t.Helper()
	if r := one(e, semaphore.Release{Key: "k", Holder: holder}); r.Value != semaphore.Number(1) {
		t.Fatalf("release of %s: got %v, %v, want 1", holder, r.Value, r.Err)
	}
}

func TestWaitersOutlastARestartOfRedis(t *testing.T) {
	r := redisd.Run(t, redisd.Durable()...)
	e := openEngine(t, r)
	w := holdAndWait(t, e)
	r.Kill()
	released := make(chan semaphore.Reply, 1)
	go func() { released <- one(e, semaphore.Release{Key: "k", Holder: "a"}) }()
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := <-released; got.Value != semaphore.Number(1) {
		t.Errorf("release while Redis was away: got %v, %v, want 1", got.Value, got.Err)
	}
	granted(t, w)
	t.Logf("served %v after Redis was back", time.Since(began))
}

func TestWaitersOutlastAPauseOfRedis(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r)
	w := holdAndWait(t, e)
	for range 3 {
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
		released := make(chan semaphore.Reply, 1)
		go func() { released <- one(e, semaphore.Release{Key: "k", Holder: "a"}) }()
		<-time.After(1200 * time.Millisecond) // longer than calls are waited for
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
		if got := <-released; got.Value != semaphore.Number(1) {
			t.Fatalf("release across a pause: got %v, %v, want 1", got.Value, got.Err)
		}
		granted(t, w)
		release(t, e, "b")
		if got := ledger(t, r); got != [2]any{int64(1), int64(0)} {
			t.Fatalf("free, held: got %v, want 1, 0", got)
		}
		if got := one(e, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour}); got.Value == nil {
			t.Fatalf("got %v, want a grant", got.Err)
		}
		w = wait(t, e, "b", time.Minute)
	}
}

func TestARedisThatHasForgottenEverythingEndsTheLine(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r)
	w := holdAndWait(t, e)
	before := one(e, semaphore.Inspect{Key: "k"}).Value.(*semaphore.Info).LastToken
	r.Kill()
	if err := r.RestartEmpty(); err != nil {
		t.Fatal(err)
	}
	if got := <-w.Done; got.Err == nil || got.Err.Error() != semaphore.ErrNoSemaphore.Error() {
		t.Errorf("who waited: got %v, %v, want NOSEM", got.Value, got.Err)
	}
	create(t, e, "k", 1)
	g, ok := one(e, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1}).Value.(*semaphore.Grant)
	if !ok || g.Token <= before {
		t.Errorf("token after everything was lost: got %+v, want one above %d", g, before)
	}
}

func TestNullComesInTimeWhileRedisIsAway(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r)
	holdAndWait(t, e)
	began := time.Now()
	w := wait(t, e, "c", 2*time.Second)
	r.Kill()
	got := <-w.Done
	if took := time.Since(began); took < 2*time.Second || took > 3500*time.Millisecond {
		t.Errorf("a WAIT of 2s ended after %v", took)
	}
	if got.Value != nil {
		t.Errorf("got %v, want no permit", got.Value)
	}
	began = time.Now()
	if got := one(e, semaphore.Acquire{Key: "k", Holder: "d", Permits: 1}); got.Value != nil || got.Err == nil {
		t.Errorf("without Redis: got %v, %v, want an error", got.Value, got.Err)
	}
	if took := time.Since(began); took > 7*time.Second {
		t.Errorf("without Redis: told after %v, want within the hold of 5s", took)
	}
	if err := e.Ready(); err == nil {
		t.Error("ready: got yes, want why not")
	}
}

func TestFlushedScriptsDisturbNobody(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r)
	create(t, e, "k", 1)
	for range 10 {
		ask(t, r, "SCRIPT", "FLUSH")
		if got := one(e, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1}); got.Value == nil {
			t.Fatalf("got %v, want a grant", got.Err)
		}
		ask(t, r, "SCRIPT", "FLUSH")
		release(t, e, "a")
	}
}

func TestCloseLeavesNoPlaceInTheSharedLine(t *testing.T) {
	r := redisd.Run(t)
	e, other := openEngine(t, r), openEngine(t, r)
	w := holdAndWait(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-w.Done; got.Value != nil {
		t.Errorf("who waited at a server that stops: got %v, want no permit", got.Value)
	}
	release(t, other, "a")
	if got := one(other, semaphore.Acquire{Key: "k", Holder: "c", Permits: 1}); got.Value == nil {
		t.Errorf("nobody waits any more: got %v, %v, want a grant", got.Value, got.Err)
	}
}
