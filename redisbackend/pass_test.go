package redisbackend

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// eager makes passes often.
func eager(c *Config) { c.ReconcileEvery, c.ReconcileGrace = 50*time.Millisecond, 200*time.Millisecond }

// idle makes none.
func idle(c *Config) { c.ReconcileEvery = time.Hour }

// ask sends a command to Redis.
func ask(t testing.TB, r *redisd.Server, args ...any) any {
	t.Helper()
	reply, err := r.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// ledger is what is free and what is held of the semaphore k.
func ledger(t testing.TB, r *redisd.Server) [2]any {
	t.Helper()
	return [2]any{ask(t, r, "LLEN", "sem:k:permits"), ask(t, r, "ZCARD", "sem:k:holders")}
}

func create(t testing.TB, e *Engine, key string, capacity int64) {
	t.Helper()
	if r := one(e, semaphore.Create{Key: key, Capacity: capacity}); r.Err != nil {
		t.Fatal(r.Err)
	}
}

func TestThePassRestoresWhatACrashHasLost(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, eager)
	create(t, e, "k", 3)
	ask(t, r, "RPOP", "sem:k:permits") // and never a ZADD
	w := one(e, semaphore.Acquire{Key: "k", Holder: "all", Permits: 3, Wait: time.Minute}).Value.(*semaphore.Waiting)
	if got := <-w.Done; got.Value == nil {
		t.Errorf("who waits for all permits: got %v, want a grant", got.Err)
	}
	if got := ledger(t, r); got != [2]any{int64(0), int64(3)} {
		t.Errorf("free, held: got %v, want 0, 3", got)
	}
}

func TestThePassLeavesAlonePermitsThatAreUnderWay(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, eager)
	create(t, e, "k", 3)
	for n := range 30 { // always one is between BRPOP and ZADD, each for less than the grace
		ask(t, r, "RPOP", "sem:k:permits")
		<-time.After(30 * time.Millisecond)
		if got := ledger(t, r); got != [2]any{int64(2), int64(0)} {
			t.Fatalf("free, held in round %d: got %v, want 2, 0", n, got)
		}
		ask(t, r, "RPUSH", "sem:k:permits", "p")
	}
}

func TestThePassTakesOutWhatHasExpiredAndTrimsWhatIsTooMany(t *testing.T) {
	r := redisd.Run(t)
	create(t, openEngine(t, r, eager), "k", 3)
	ask(t, r, "RPOP", "sem:k:permits")
	ask(t, r, "ZADD", "sem:k:holders", 1000, "dead")
	ask(t, r, "RPUSH", "sem:k:permits", "p", "p")
	trial.Until(t, "free, held: 3, 0", func() bool { return ledger(t, r) == [2]any{int64(3), int64(0)} })
}

func TestThePassRemovesWhatNobodyUses(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, eager)
	one(e, semaphore.Create{Key: "k", Capacity: 3, Settings: semaphore.Settings{Idle: semaphore.Set(200 * time.Millisecond)}})
	trial.Until(t, "removed", func() bool { return ask(t, r, "EXISTS", "sem:k:permits") == int64(0) })
	if got := one(e, semaphore.Scan{Count: 10}).Value.(*semaphore.KeyPage).Keys; len(got) != 0 {
		t.Errorf("names: got %v, want none", got)
	}
}

func TestThePassFindsWhatTheRegistryHasLost(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, eager)
	create(t, e, "k", 3)
	ask(t, r, "DEL", "sem::registry")
	trial.Until(t, "named again", func() bool {
		return len(one(e, semaphore.Scan{Count: 10}).Value.(*semaphore.KeyPage).Keys) == 1
	})
}

func TestOneServerAtATimeMakesThePass(t *testing.T) {
	r := redisd.Run(t)
	first, second := openEngine(t, r, idle), openEngine(t, r, idle)
	one1, other := newPass(first), newPass(second)
	for _, c := range []struct {
		p    *pass
		want bool
	}{{one1, true}, {other, false}, {one1, true}} {
		if got, err := c.p.turn.take(t.Context()); got != c.want || err != nil {
			t.Errorf("turn of %s: got %v, %v, want %v", c.p.turn.me, got, err, c.want)
		}
	}
	if err := one1.turn.giveUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := other.turn.take(t.Context()); !got {
		t.Errorf("turn after it was given up: got %v, %v, want true", got, err)
	}
	ask(t, r, "DEL", "sem::turn") // as when its term is over
	if got, err := one1.turn.take(t.Context()); !got {
		t.Errorf("turn after its end: got %v, %v, want true", got, err)
	}
	if got, err := other.turn.take(t.Context()); got {
		t.Errorf("turn of who has lost it: got %v, %v, want false", got, err)
	}
}

func TestAServerThatDiesInThePassIsReplaced(t *testing.T) {
	r := redisd.Run(t)
	create(t, openEngine(t, r, idle), "k", 3)
	dead := newPass(openEngine(t, r, idle))
	dead.turn.term = 300 * time.Millisecond
	if got, err := dead.turn.take(t.Context()); !got {
		t.Fatalf("turn: got %v, %v, want true", got, err)
	}
	openEngine(t, r, eager)
	ask(t, r, "RPOP", "sem:k:permits")
	ask(t, r, "ZADD", "sem:k:holders", 1000, "dead")
	trial.Until(t, "free, held: 3, 0", func() bool { return ledger(t, r) == [2]any{int64(3), int64(0)} })
}

func TestThePassWorksThroughManySemaphores(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, eager)
	const many = 1500
	requests := make([]semaphore.Request, 0, 256)
	for n := range many {
		requests = append(requests, semaphore.Create{Key: fmt.Sprint("s", n), Capacity: 2})
		if len(requests) == cap(requests) || n == many-1 {
			e.Do(requests)
			requests = requests[:0]
		}
		if n%100 == 0 {
			ask(t, r, "PING")
		}
	}
	for n := 0; n < many; n += 300 {
		key := fmt.Sprintf("sem:s%d:", n)
		ask(t, r, "RPOP", key+"permits")
		ask(t, r, "ZADD", key+"holders", 1000, "dead")
	}
	trial.Until(t, "all free", func() bool {
		for n := 0; n < many; n += 300 {
			if ask(t, r, "LLEN", fmt.Sprintf("sem:s%d:permits", n)) != int64(2) {
				return false
			}
		}
		return true
	})
}

func TestThePassRestoresManyShortfallsThoughSomeAreInUse(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, eager)
	const many, busy = 100, 3
	for n := range many {
		create(t, e, fmt.Sprint("s", n), 2)
	}
	for n := range many {
		ask(t, r, "RPOP", fmt.Sprintf("sem:s%d:permits", n))
	}
	trial.Until(t, "all restored but those in use", func() bool {
		restored := true
		for n := range many {
			permits := fmt.Sprintf("sem:s%d:permits", n)
			if n < busy { // somebody takes and returns the other permit all the time
				ask(t, r, "RPOP", permits)
				ask(t, r, "RPUSH", permits, "p")
				continue
			}
			restored = restored && ask(t, r, "LLEN", permits) == int64(2)
		}
		return restored
	})
	for n := range busy {
		trial.Until(t, "those in use restored", func() bool {
			return ask(t, r, "LLEN", fmt.Sprintf("sem:s%d:permits", n)) == int64(2)
		})
	}
}

func TestThePassGoesOnBehindASemaphoreThatCannotBeLookedAfter(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, eager)
	create(t, e, "bad", 1)
	create(t, e, "k", 1)
	ask(t, r, "DEL", "sem:bad:permits")
	ask(t, r, "SET", "sem:bad:permits", "mine")

	ask(t, r, "RPOP", "sem:k:permits")

	trial.Until(t, "the permit is restored", func() bool { return ledger(t, r) == [2]any{int64(1), int64(0)} })
}
