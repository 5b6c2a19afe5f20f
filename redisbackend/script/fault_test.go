package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// fill uses up Redis's memory.
func (r *rig) fill() {
	r.Helper()
	r.do("CONFIG", "SET", "maxmemory", "1")
}

func TestOutOfMemoryReleasesWorkAndAcquiresAreRefused(t *testing.T) {
	for name, set := range map[string]semaphore.Settings{"plain": {}, "quarantine": {Quarantine: semaphore.Set(time.Second)}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "--maxmemory-policy", "noeviction")
			r.create("k", 4, set)
			g := r.acquire("k", "a", time.Minute)
			r.acquire("k", "b", time.Minute)
			many := r.ask(semaphore.Acquire{Key: "k", Holder: "c", Permits: 2}).Value.(*semaphore.Grant)
			r.care(semaphore.Resize{Key: "k", Capacity: 6})
			r.fill()

			refused := r.ask(semaphore.Acquire{Key: "k", Holder: "x", Permits: 1})
			equal(t, "acquire", fmt.Sprint(refused.Err), "BACKEND OOM Redis has no memory left; nothing was done")
			r.books("k", 2, 4)
			equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "a", Token: g.Token}), 1)
			equal(t, "renew", r.number(semaphore.Renew{Key: "k", Holder: "a", Lease: time.Hour}), time.Hour.Milliseconds())
			for _, h := range []string{"a", "b", "c"} {
				equal(t, "release "+h, r.number(semaphore.Release{Key: "k", Holder: h}), 1)
			}
			r.books("k", 6, 0)

			r.do("CONFIG", "SET", "maxmemory", "0")
			if next := r.acquire("k", "y", time.Minute); next.Token <= many.Token || next.Slot() != 0 {
				t.Errorf("acquire with memory again: got %+v, want slot 0 and a token above %d", next, many.Token)
			}
		})
	}
}

func TestOutOfMemoryNothingIsMade(t *testing.T) {
	r := newRig(t, "--maxmemory-policy", "noeviction")
	r.fill()

	got := r.care(semaphore.Create{Key: "k", Capacity: 2})
	equal(t, "create", fmt.Sprint(got.Err), "BACKEND OOM Redis has no memory left; nothing was done")
	refused := r.ask(semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Create: true, Capacity: 1})
	equal(t, "acquire", fmt.Sprint(refused.Err), "BACKEND OOM Redis has no memory left; nothing was done")
	equal(t, "keys", len(r.keys()), 0)
}

func TestOutOfMemoryAHolderInLineStaysThere(t *testing.T) {
	r := newRig(t, "--maxmemory-policy", "noeviction")
	r.create("k", 2)
	r.acquire("k", "a", time.Minute)
	r.fill()

	o := r.step("k", line(waiter("w", 1, 100)))

	equal(t, "served", len(o.Served), 0)
	r.books("k", 1, 1)
}

func TestAKeyOfAnotherTypeIsRefusedAndLeftAlone(t *testing.T) {
	for _, end := range []string{permitsEnd, holdersEnd, metaEnd, grantsEnd} {
		t.Run(end, func(t *testing.T) {
			r := newRig(t)
			r.do("SET", "sem:k"+end, "mine")
			calls := map[string]Call{
				"create": r.lib.Create(r.stamp(), semaphore.Create{Key: "k", Capacity: 2}, 0),
				"adopt":  r.lib.Reconcile(r.stamp(), semaphore.Reconcile{Key: "k", Adopt: true, Capacity: 2}, r.ticket(), 0),
			}
			acquire, err := r.lib.Serve("k", r.stamp(), one(semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Create: true, Capacity: 2}, r.ticket(), false))
			if err != nil {
				t.Fatal(err)
			}
			calls["acquire"] = acquire
			for name, c := range calls {
				if _, err := r.send(c); err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
					t.Errorf("%s: got %v, want WRONGTYPE", name, err)
				}
			}
			equal(t, "the key", r.do("GET", "sem:k"+end), any("mine"))
			equal(t, "keys", len(r.keys()), 1)
		})
	}
}

func TestAKeyThatBecomesAnotherTypeLosesNoPermit(t *testing.T) {
	for _, end := range []string{permitsEnd, holdersEnd, grantsEnd, slotsEnd} {
		t.Run(end, func(t *testing.T) {
			r := newRig(t)
			r.create("k", 3)
			for _, h := range []string{"a", "b", "c"} {
				r.acquire("k", h, time.Minute)
			}
			r.number(semaphore.Release{Key: "k", Holder: "a"})
			r.do("DEL", "sem:k"+end)
			r.do("SET", "sem:k"+end, "mine")
			before := fmt.Sprint(r.do("DEBUG", "DIGEST"))

			for name, q := range map[string]semaphore.Request{
				"acquire": semaphore.Acquire{Key: "k", Holder: "d", Permits: 1},
				"release": semaphore.Release{Key: "k", Holder: "b"},
			} {
				c, err := r.lib.Serve("k", r.stamp(), one(q, r.ticket(), false))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.send(c); err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
					t.Errorf("%s: got %v, want WRONGTYPE", name, err)
				}
			}

			equal(t, "all of Redis", fmt.Sprint(r.do("DEBUG", "DIGEST")), before)
		})
	}
}

func TestAReplicaRefusesWhateverMayChangeSomething(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	g := r.acquire("k", "a", time.Minute)
	r.do("REPLICAOF", "127.0.0.1", "1")
	for name, s := range map[string]*Step{
		"acquire":                 one(semaphore.Acquire{Key: "k", Holder: "b", Permits: 1}, r.ticket(), false),
		"release":                 one(semaphore.Release{Key: "k", Holder: "a"}, r.ticket(), false),
		"release of nothing":      one(semaphore.Release{Key: "k", Holder: "b"}, r.ticket(), false),
		"release, another token":  one(semaphore.Release{Key: "k", Holder: "a", Token: g.Token - 1}, r.ticket(), false),
		"renew":                   one(semaphore.Renew{Key: "k", Holder: "a"}, r.ticket(), false),
		"a waiter":                line(waiter("w", 1, 100)),
		"a waiter who cannot yet": line(waiter("w", 2, 100)),
	} {
		if _, err := r.try("k", r.stamp(), s); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
			t.Errorf("%s: got %v, want READONLY", name, err)
		}
	}
	equal(t, "check", r.number(semaphore.Check{Key: "k", Holder: "a", Token: g.Token}), 1)
	r.do("REPLICAOF", "NO", "ONE")
	r.books("k", 1, 1)
}
