package script

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func (r *rig) err(q semaphore.Request) string {
	r.Helper()
	got := r.care(q)
	if got.Err == nil {
		r.Fatalf("%+v: got %+v, want an error", q, got.Value)
	}
	return got.Err.Error()
}

func TestCreateConfirmsWhatIsStoredAndRefusesAnythingElse(t *testing.T) {
	r := newRig(t)
	set := semaphore.Settings{Lease: semaphore.Set(5 * time.Second), Idle: semaphore.Set(time.Hour)}
	r.create("k", 3, set)
	r.create("k", 3)
	r.create("k", 3, set)
	want := "CONFLICT this semaphore exists with CAPACITY 3 LEASE 5000 IDLE 3600000"
	equal(t, "another capacity", r.err(semaphore.Create{Key: "k", Capacity: 4}), want)
	equal(t, "another setting", r.err(semaphore.Create{Key: "k", Capacity: 3, Settings: semaphore.Settings{MaxHold: semaphore.Set(time.Second)}}), want)
	equal(t, "a lease that contradicts", r.err(semaphore.Create{Key: "k", Capacity: 3, Settings: semaphore.Settings{MaxLease: semaphore.Set(time.Second)}}), want)
	equal(t, "if absent", r.care(semaphore.Create{Key: "k", Capacity: 4, IfAbsent: true}).Err, nil)
	equal(t, "new and contradictory", r.err(semaphore.Create{Key: "l", Capacity: 3, Settings: semaphore.Settings{Lease: semaphore.Set(2 * time.Second), MaxLease: semaphore.Set(time.Second)}}),
		"ERR LEASE 2000 would be above MAXLEASE 1000")
	got := r.info("k")
	equal(t, "settings", got.Settings, set)
	equal(t, "capacity", got.Capacity, 3)
	equal(t, "other", r.care(semaphore.Inspect{Key: "l"}).Err, error(semaphore.ErrNoSemaphore))
}

func TestAnAcquireMakesASemaphoreThatCreateMakesPermanent(t *testing.T) {
	r := newRig(t)
	a := semaphore.Acquire{Key: "k", Holder: "h", Permits: 3, Create: true, Capacity: 2}
	equal(t, "more than the capacity", r.ask(a).Err.Error(), "TOOMANY 3 permits asked for, and the capacity is 2")
	equal(t, "made by a refusal", len(r.names(5)), 0)
	a.Permits = 1
	if got := r.ask(a); got.Err != nil || got.Value == nil {
		t.Fatalf("got %+v, want a grant", got)
	}
	equal(t, "idle", r.info("k").Settings.Idle, semaphore.Set(24*time.Hour))
	a.Holder, a.Capacity = "i", 9
	r.ask(a)
	equal(t, "capacity stands", r.info("k").Capacity, 2)
	r.create("k", 2)
	equal(t, "idle", r.info("k").Settings.Idle, semaphore.Setting{})
	a.Key, a.Create = "l", false
	equal(t, "unknown", r.ask(a).Err, error(semaphore.ErrNoSemaphore))
}

func TestWhatThisModeCannotDoIsRefused(t *testing.T) {
	r := newRig(t)
	equal(t, "capacity", r.err(semaphore.Create{Key: "k", Capacity: MaxCapacity + 1}), "ERR the capacity must be 0 to 100000 in Redis mode, not 100001")
	r.create("k", MaxCapacity)
	r.books("k", MaxCapacity, 0)
	equal(t, "resize", r.err(semaphore.Resize{Key: "k", Capacity: MaxCapacity + 1}), "ERR the capacity must be 0 to 100000 in Redis mode, not 100001")
	equal(t, "permits", r.ask(semaphore.Acquire{Key: "k", Holder: "h", Permits: MaxPermits + 1}).Err.Error(), "ERR PERMITS must be 1 to 1000 in Redis mode, not 1001")
	equal(t, "acquire", r.ask(semaphore.Acquire{Key: "l", Holder: "h", Permits: 1, Create: true, Capacity: MaxCapacity + 1}).Err.Error(),
		"ERR the capacity must be 0 to 100000 in Redis mode, not 100001")
	r.limits.MaxSemaphores = 1
	equal(t, "semaphores", r.err(semaphore.Create{Key: "l", Capacity: 1}), "ERR there are 1 semaphores, and --max-semaphores is 1")
	equal(t, "resized", r.care(semaphore.Resize{Key: "k", Capacity: 7}).Value.(semaphore.Usage), semaphore.Usage{Capacity: 7, Available: 7})
	r.books("k", 7, 0)
}

func TestGrantsOfManyPermitsHaveSlotsOfTheirOwn(t *testing.T) {
	r := newRig(t)
	r.create("k", 3*MaxPermits)
	used := map[int64]string{}
	take := func(holder string, permits int64) {
		t.Helper()
		g, ok := r.ask(semaphore.Acquire{Key: "k", Holder: holder, Permits: permits}).Value.(*semaphore.Grant)
		if !ok || int64(len(places(g))) != permits {
			t.Fatalf("acquire %d: got %+v, want so many slots", permits, g)
		}
		for place := range places(g) {
			if other, taken := used[place]; taken || place >= 3*MaxPermits {
				t.Fatalf("slot %d: got it for %s, which %s has", place, holder, other)
			}
			used[place] = holder
		}
	}
	drop := func(holder string) {
		t.Helper()
		equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: holder}), 1)
		for place, h := range used {
			if h == holder {
				delete(used, place)
			}
		}
	}
	take("a", MaxPermits)
	take("b", 1)
	take("c", MaxPermits)
	drop("a")
	take("d", 1)
	take("e", MaxPermits-2)
	take("f", MaxPermits)
	drop("b")
	drop("d")
	take("g", 2)
	equal(t, "rows", r.info("k").Rows, 3*MaxPermits)
	r.books("k", 3*MaxPermits-int64(len(used)), int64(len(used)))
	for _, h := range []string{"c", "e", "f", "g"} {
		drop(h)
	}
	r.books("k", 3*MaxPermits, 0)
}

func TestResizeDownTakesNothingAndShowsTheExcess(t *testing.T) {
	r := newRig(t)
	r.create("k", 5)
	for _, h := range []string{"a", "b", "c", "d"} {
		r.acquire("k", h, time.Minute)
	}
	equal(t, "usage", r.care(semaphore.Resize{Key: "k", Capacity: 2}).Value.(semaphore.Usage), semaphore.Usage{Capacity: 2, InUse: 4})
	i := r.info("k")
	equal(t, "excess", i.Excess, 2)
	equal(t, "surplus", i.Surplus, 0)
	equal(t, "missing", i.Missing, 0)
	equal(t, "rows", i.Rows, 4)
	r.number(semaphore.Release{Key: "k", Holder: "a"})
	r.number(semaphore.Release{Key: "k", Holder: "d"})
	r.books("k", 0, 2)
	equal(t, "rows", r.info("k").Rows, 3)
	equal(t, "acquire", r.ask(semaphore.Acquire{Key: "k", Holder: "x", Permits: 1}), Result{})
	r.number(semaphore.Release{Key: "k", Holder: "b"})
	equal(t, "slot", r.acquire("k", "x", time.Minute).Slot(), 0)
	equal(t, "paused", r.care(semaphore.Resize{Key: "k", Capacity: 0}).Err, nil)
	equal(t, "acquire while paused", r.ask(semaphore.Acquire{Key: "k", Holder: "y", Permits: 3}), Result{})
	equal(t, "unknown", r.err(semaphore.Resize{Key: "l", Capacity: 1}), "NOSEM no such semaphore")
}

func TestDeleteMindsHoldersAndKeepsTheToken(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	g := r.acquire("k", "h", time.Minute)
	equal(t, "delete", r.err(semaphore.Delete{Key: "k"}), semaphore.ErrInUse.Error())
	equal(t, "delete by force", r.care(semaphore.Delete{Key: "k", Force: true}).Value.(semaphore.Number), 1)
	equal(t, "keys", strings.Join(r.keys(), " "), "sem:k:meta")
	ttl := r.do("TTL", "sem:k:meta").(int64)
	if ttl < 7*24*3600-60 || ttl > 7*24*3600 {
		t.Errorf("the token is kept for %d s, want a week", ttl)
	}
	equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: "h"}), 0)
	equal(t, "delete again", r.care(semaphore.Delete{Key: "k"}).Value.(semaphore.Number), 0)

	if got := r.care(semaphore.Create{Key: "k", Capacity: 1, MinToken: g.Token + 1_000_000_000}); got.Err != nil {
		t.Fatal(got.Err)
	}
	equal(t, "token", r.acquire("k", "h", time.Minute).Token, g.Token+1_000_000_001)
	equal(t, "counters", r.info("k").Counters.GrantsImmediate, 1)
	equal(t, "expires", r.do("TTL", "sem:k:meta"), any(int64(-1)))
}

func (r *rig) keys() (keys []string) {
	r.Helper()
	for _, k := range r.do("KEYS", "*").([]any) {
		keys = append(keys, k.(string))
	}
	return keys
}

func TestTokensAreExactToTheirEnd(t *testing.T) {
	r := newRig(t)
	r.create("k", 3)
	r.floor = 1<<53 - 5
	for i := range int64(3) {
		g := r.acquire("k", string(rune('a'+i)), time.Minute)
		equal(t, "token", g.Token, 1<<53-4+i)
		equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: g.Holder, Token: g.Token}), 1)
		equal(t, "check of the one before", r.number(semaphore.Check{Key: "k", Holder: g.Holder, Token: g.Token - 1}), 0)
	}
	equal(t, "latest", r.info("k").LastToken, 1<<53-2)
	r.care(semaphore.Delete{Key: "k", Force: true})
	equal(t, "kept", r.do("HGET", "sem:k:meta", "last"), any("9007199254740990"))
}

func TestOthersAreToldOfChanges(t *testing.T) {
	r := newRig(t)
	messages := r.redis.Subscribe(context.Background(), r.lib.layout.Channel("k"))
	defer messages.Close()
	if _, err := messages.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.create("k", 1)
	r.do("LPOP", "sem:k:permits")
	for _, step := range []struct {
		q    semaphore.Request
		news News
	}{
		{semaphore.Reconcile{Key: "k"}, Changed}, {semaphore.Resize{Key: "k", Capacity: 5}, Changed}, {semaphore.Delete{Key: "k"}, Deleted},
	} {
		r.care(step.q)
		m := <-messages.Channel()
		got, err := ParseMessage(m.Payload)
		if err != nil || got.News != step.news || got.To != 0 || got.From != r.server || got.Key != "k" {
			t.Errorf("after %T: got %+v, %v, want %s for all", step.q, got, err, step.news)
		}
	}
}

func TestALineNotOfOursIsNoMessage(t *testing.T) {
	for _, payload := range []string{"", "permit", "permit @1 @2 x k", "permit 1 @2 3 k", "permit @1 2 3 k", "permit @1 @! 3 k"} {
		if m, err := ParseMessage(payload); err == nil {
			t.Errorf("%q: got %+v, want an error", payload, m)
		}
	}
}

func TestAStepHasABound(t *testing.T) {
	r := newRig(t)
	r.create("k", MaxStep)
	s := &Step{}
	for i := range MaxStep {
		s.Ops = append(s.Ops, Op{Request: semaphore.Acquire{Key: "k", Holder: fmt.Sprint("h", i), Permits: 1}, Ticket: semaphore.Ticket{Incarnation: 1, Number: uint64(i + 1)}})
	}
	r.step("k", s)
	r.books("k", 0, MaxStep)
	for i := range s.Ops {
		s.Ops[i].Request = semaphore.Release{Key: "k", Holder: fmt.Sprint("h", i)}
	}
	r.step("k", s)
	r.books("k", MaxStep, 0)

	s.Ops = append(s.Ops, s.Ops[0])
	if _, err := r.lib.Serve("k", r.stamp(), s); err == nil {
		t.Errorf("a step of %d: got no error, want one", len(s.Ops))
	}
	s.Ops = []Op{{Request: semaphore.Scan{}}}
	if _, err := r.lib.Serve("k", r.stamp(), s); err == nil {
		t.Error("a scan as an op: got no error, want one")
	}
}
