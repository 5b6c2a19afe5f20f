package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// releaseRecipe and compensateRecipe are what clients use that work on the public keys by hand.
const (
	releaseRecipe    = `if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then redis.call('RPUSH', KEYS[1], 'p') return 1 end return 0`
	compensateRecipe = `
local t = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. string.format('%.0f', math.floor((t[1] * 1000000 + t[2]) / 1000)))
local missing = ARGV[1] - redis.call('LLEN', KEYS[1]) - redis.call('ZCARD', KEYS[2])
for i = 1, missing do redis.call('RPUSH', KEYS[1], 'p') end
return missing`
)

func (r *rig) recipe(text string, key string, arg any) any {
	r.Helper()
	return r.do("EVAL", text, 2, r.lib.layout.Permits(key), r.lib.layout.Holders(key), arg)
}

// take acquires by hand.
func (r *rig) take(key, holder string, lease time.Duration) bool {
	r.Helper()
	if r.do("BRPOP", r.lib.layout.Permits(key), "0.01") == nil {
		return false
	}
	r.do("ZADD", r.lib.layout.Holders(key), r.clock()+lease.Milliseconds(), holder)
	return true
}

func TestRawHoldersAreHoldersWithoutTokenAndSlot(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	r.take("k", "raw", time.Minute)

	rows := r.holders("k")
	equal(t, "holders", len(rows), 1)
	equal(t, "holder", rows[0].Holder, "raw")
	equal(t, "token", rows[0].Token, 0)
	equal(t, "slot", rows[0].Slot, -1)
	equal(t, "permits", rows[0].Permits, 1)
	equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "raw", Token: 0}), 0)
	equal(t, "renew", r.number(semaphore.Renew{Key: "k", Holder: "raw", Lease: time.Hour}), time.Hour.Milliseconds())
	equal(t, "renew under a token", r.number(semaphore.Renew{Key: "k", Holder: "raw", Token: 5}), 0)
	equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: "raw"}), 1)
	r.books("k", 2, 0)
}

func TestAnAcquireAdoptsARawHolder(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	r.take("k", "raw", time.Minute)

	g := r.acquire("k", "raw", time.Hour)

	equal(t, "replayed", g.Replayed, false)
	equal(t, "slot", g.Slot(), 0)
	equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "raw", Token: g.Token}), 1)
	r.books("k", 1, 1)
	other := semaphore.Acquire{Key: "k", Holder: "raw2", Permits: 2}
	r.take("k", "raw2", time.Minute)
	if got := r.ask(other); got.Err == nil || !strings.HasPrefix(got.Err.Error(), "CONFLICT") {
		t.Errorf("acquire of two by a raw holder of one: got %+v, want CONFLICT", got)
	}
}

func TestAReleaseByHandCounts(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	g := r.acquire("k", "ours", time.Minute)

	equal(t, "released by hand", r.recipe(releaseRecipe, "k", "ours"), any(int64(1)))

	equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: "ours"}), 0)
	equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "ours", Token: g.Token}), 0)
	equal(t, "slot of the next grant", r.acquire("k", "next", time.Minute).Slot(), 0)
	r.books("k", 0, 1)
}

func TestAScoreChangedByHandMakesAHolderRaw(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	g := r.acquire("k", "h", time.Minute)
	r.do("ZADD", "sem:k:holders", r.clock()+time.Hour.Milliseconds(), "h")

	equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "h", Token: g.Token}), 0)
	equal(t, "release under the old token", r.number(semaphore.Release{Key: "k", Holder: "h", Token: g.Token}), 0)
	equal(t, "token", r.holders("k")[0].Token, 0)
	equal(t, "release", r.number(semaphore.Release{Key: "k", Holder: "h"}), 1)
	r.books("k", 2, 0)
}

func TestCompensationByHandLeavesNothingStale(t *testing.T) {
	r := newRig(t)
	r.create("k", 3)
	for i := range 3 {
		r.acquire("k", fmt.Sprint("h", i), time.Millisecond)
	}
	r.pass(time.Millisecond)
	r.recipe(compensateRecipe, "k", 3)
	r.books("k", 3, 0)

	r.tend("k")

	equal(t, "records", r.do("HLEN", "sem:k:grants"), any(int64(0)))
	equal(t, "expirations", r.info("k").Counters.Expirations, 3)
	equal(t, "slot", r.acquire("k", "x", time.Minute).Slot(), 0)
}

func TestKeysMadeByHandAreTakenOverAsTheyAre(t *testing.T) {
	for name, q := range map[string]semaphore.Request{
		"create":    semaphore.Create{Key: "k", Capacity: 3},
		"reconcile": semaphore.Reconcile{Key: "k", Adopt: true, Capacity: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.do("RPUSH", "sem:k:permits", "x", "y")
			r.take("k", "raw", time.Minute)
			equal(t, "raw", r.tend("k").Raw, true)

			if got := r.care(q); got.Err != nil {
				t.Fatal(got.Err)
			}

			i := r.info("k")
			equal(t, "in use", i.InUse, 1)
			equal(t, "names", fmt.Sprint(r.names(5)), "[k]")
			if name == "create" {
				equal(t, "missing", i.Missing, 1)
				r.books("k", 1, 1)
			} else {
				r.books("k", 2, 1)
			}
		})
	}
}

func TestALostPermitIsRestoredByReconcileAlone(t *testing.T) {
	r := newRig(t)
	r.create("k", 3)
	r.do("LPOP", "sem:k:permits")

	equal(t, "missing", r.tend("k").Missing, 1)
	r.books("k", 2, 0)
	equal(t, "resized", r.care(semaphore.Resize{Key: "k", Capacity: 4}).Err, nil)
	r.books("k", 3, 0)
	equal(t, "missing", r.info("k").Missing, 1)

	equal(t, "put back", r.care(semaphore.Reconcile{Key: "k"}).Value.(semaphore.Number), 1)
	r.books("k", 4, 0)
	equal(t, "reconciled", r.info("k").Counters.Reconciled, 1)
	equal(t, "put back again", r.care(semaphore.Reconcile{Key: "k"}).Value.(semaphore.Number), 0)
}

func TestASurplusIsNeverGrantedAndIsTrimmed(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	r.do("RPUSH", "sem:k:permits", "p", "p")
	r.acquire("k", "a", time.Minute)
	equal(t, "acquire beyond the capacity", r.ask(semaphore.Acquire{Key: "k", Holder: "b", Permits: 1}), Result{})
	equal(t, "surplus", r.info("k").Surplus, 2)

	r.tend("k")

	r.books("k", 0, 1)
	r.do("RPUSH", "sem:k:permits", "p")
	equal(t, "put back", r.care(semaphore.Reconcile{Key: "k"}).Value.(semaphore.Number), 0)
	r.books("k", 0, 1)
}

func TestMembersThatWereLostWithTheZSETArePutBack(t *testing.T) {
	r := newRig(t)
	r.create("k", 1000)
	var tokens []int64
	for i := range 900 {
		tokens = append(tokens, r.acquire("k", fmt.Sprint("h", i), time.Hour).Token)
	}
	r.do("DEL", "sem:k:holders")
	equal(t, "renew", r.number(semaphore.Renew{Key: "k", Holder: "h899", Lease: time.Hour}), time.Hour.Milliseconds())
	equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "h0", Token: tokens[0]}), 1)

	for range 20 {
		if got := r.care(semaphore.Reconcile{Key: "k"}).Value.(semaphore.Number); got != 0 {
			t.Errorf("put back: got %d, want 0: what is missing is held", got)
		}
	}

	r.books("k", 100, 900)
	for i, token := range tokens {
		if r.number(semaphore.Check{Key: "k", Holder: fmt.Sprint("h", i), Token: token}) != 1 {
			t.Fatalf("check of h%d: got 0, want 1", i)
		}
	}
}

func TestAListDeletedByHandIsFilledUpToWhatIsFree(t *testing.T) {
	r := newRig(t)
	r.create("k", 3)
	r.acquire("k", "a", time.Minute)
	r.do("DEL", "sem:k:permits")

	equal(t, "create again", r.care(semaphore.Create{Key: "k", Capacity: 3}).Err, nil)
	r.books("k", 0, 1)
	equal(t, "put back", r.care(semaphore.Reconcile{Key: "k"}).Value.(semaphore.Number), 2)
	r.books("k", 2, 1)
}

func TestNamesOfAnyBytesAreKeptApart(t *testing.T) {
	r := newRig(t)
	names := []string{"a", "a:permits", "\x00", "a\r\nb", "{a}", "\xff\xfe", " ", "registry", ":registry", strings.Repeat("x", semaphore.MaxName)}
	holders := []string{"h", "\x00semserver:", "\x00semserver:=h", "\x00semserver:+1:h", "\x00semserver:@1:1", "\x00semserver:q1", "\xff", strings.Repeat("y", semaphore.MaxName)}
	for _, name := range names {
		r.create(name, int64(len(holders)))
		for _, h := range holders {
			r.acquire(name, h, time.Minute)
		}
	}
	for _, name := range names {
		var got []string
		for _, row := range r.holders(name) {
			got = append(got, row.Holder)
		}
		if !slices.Equal(got, holders) {
			t.Errorf("holders of %q: got %q, want %q in the order of their tokens", name, got, holders)
		}
		for _, h := range holders {
			equal(t, fmt.Sprintf("release %q", h), r.number(semaphore.Release{Key: name, Holder: h}), 1)
		}
		r.books(name, int64(len(holders)), 0)
	}
	got := r.names(3)
	if !slices.Equal(got, names) {
		t.Errorf("names: got %q, want %q", got, names)
	}
}
