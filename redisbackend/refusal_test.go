package redisbackend

import (
	"errors"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// refusedWith checks that a reply is an error of this code.
func refusedWith(t testing.TB, what string, got semaphore.Reply, code semaphore.Code) {
	t.Helper()
	if !errors.Is(got.Err, &semaphore.Error{Code: code}) {
		t.Errorf("%s: got %v, %v, want %s", what, got.Value, got.Err, code)
	}
}

func TestWithoutMemoryReleasesWorkAndWaitersStay(t *testing.T) {
	r := redisd.Run(t, "--maxmemory-policy", "noeviction")
	e := openEngine(t, r)
	create(t, e, "k", 2)
	for _, holder := range []string{"a", "b"} {
		if got := one(e, semaphore.Acquire{Key: "k", Holder: holder, Permits: 1, Lease: time.Hour}); got.Value == nil {
			t.Fatalf("got %v, want a grant", got.Err)
		}
	}
	w := wait(t, e, "c", time.Minute)
	ask(t, r, "CONFIG", "SET", "maxmemory", "1")
	release(t, e, "a")
	refusedWith(t, "acquire without memory", one(e, semaphore.Acquire{Key: "fresh", Holder: "d", Permits: 1, Create: true, Capacity: 1}), semaphore.CodeBackend)
	ask(t, r, "CONFIG", "SET", "maxmemory", "0")
	granted(t, w)
	release(t, e, "b")
	release(t, e, "c")
	if got := ledger(t, r); got != [2]any{int64(2), int64(0)} {
		t.Errorf("free, held: got %v, want 2, 0", got)
	}
}

func TestAKeyOfAnotherTypeIsNamedAndLeftAlone(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r)
	ask(t, r, "SET", "sem:k:permits", "mine")
	refusedWith(t, "create", one(e, semaphore.Create{Key: "k", Capacity: 1}), semaphore.CodeWrongType)
	refusedWith(t, "acquire", one(e, gate("k", "a", 1, 0)), semaphore.CodeWrongType)
	if got := ask(t, r, "GET", "sem:k:permits"); got != "mine" {
		t.Errorf("the key: got %v, want mine", got)
	}
}

func TestABusyRedisRefusesAndWaitersStay(t *testing.T) {
	r := redisd.Run(t, "--busy-reply-threshold", "50")
	e := openEngine(t, r)
	w := holdAndWait(t, e)
	c := newByHand(t, r)
	endless := make(chan error, 1)
	go func() { endless <- c.Eval(t.Context(), "while true do end", nil).Err() }()
	trial.Until(t, "busy", func() bool { _, err := r.Do("PING"); return err != nil })
	got := one(e, semaphore.Acquire{Key: "k", Holder: "c", Permits: 1})
	if got.Err == nil {
		t.Errorf("acquire while Redis is busy: got %v, want an error", got.Value)
	}
	ask(t, r, "SCRIPT", "KILL")
	if err := <-endless; err == nil {
		t.Error("the endless script: got no error, want it killed")
	}
	trial.Until(t, "released", func() bool {
		return one(e, semaphore.Release{Key: "k", Holder: "a"}).Err == nil
	})
	granted(t, w)
}

func TestHoldersOutlastTheLossOfTheirSet(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r)
	create(t, e, "k", 2)
	g, ok := one(e, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour}).Value.(*semaphore.Grant)
	if !ok {
		t.Fatal("got no grant, want one")
	}
	ask(t, r, "DEL", "sem:k:holders")
	one(e, semaphore.Reconcile{Key: "k"})
	if got := one(e, semaphore.Check{Key: "k", Holder: "a", Token: g.Token}); got.Value != semaphore.Number(1) {
		t.Errorf("check of a live grant: got %v, %v, want 1", got.Value, got.Err)
	}
	if got := ledger(t, r); got != [2]any{int64(1), int64(1)} {
		t.Errorf("free, held: got %v, want 1, 1", got)
	}
}
