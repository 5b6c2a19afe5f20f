package script

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

func layout(t *testing.T, prefix string, tagging Tagging, cluster bool) *Layout {
	t.Helper()
	l, err := NewLayout(prefix, tagging, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPublicKeysAreNamedAsDocumented(t *testing.T) {
	for _, c := range []struct {
		layout *Layout
		want   string
	}{
		{layout(t, "sem:", TagAuto, false), "sem:cache-loader:permits sem:cache-loader:holders"},
		{layout(t, "sem:", TagAlways, false), "sem:{cache-loader}:permits sem:{cache-loader}:holders"},
		{layout(t, "sem:", TagAuto, true), "sem:{cache-loader}:permits sem:{cache-loader}:holders"},
		{layout(t, "", TagNever, false), "cache-loader:permits cache-loader:holders"},
	} {
		equal(t, "keys", c.layout.Permits("cache-loader")+" "+c.layout.Holders("cache-loader"), c.want)
	}
}

func TestSlotsAreThoseOfRedis(t *testing.T) {
	// The last ones are the examples of the specification of Redis Cluster.
	for key, want := range map[string]int{"": 0, "123456789": 12739, "foo": 12182, "{foo}bar": 12182, "foo{}{bar}": 8363, "foo{{bar}}zap": 4015} {
		equal(t, fmt.Sprintf("slot of %q", key), Slot(key), want)
	}
}

func TestKeysOfASemaphoreShareASlotAndTellItsName(t *testing.T) {
	for _, prefix := range []string{"sem:", "", "}{x}:", "{x}:", "*[?\\"} {
		l := layout(t, prefix, TagAuto, true)
		seen := map[string]string{}
		rapid.Check(t, func(t *rapid.T) {
			name := rapid.StringOfN(rapid.SampledFrom([]rune("\x00}{ab:")), 1, 6, -1).Draw(t, "name")
			keys := l.keysAndRegistry(name)
			for _, k := range keys {
				if Slot(k) != Slot(keys[0]) {
					t.Fatalf("slot of %q: got %d, want %d", k, Slot(k), Slot(keys[0]))
				}
			}
			if Slot(l.Channel(name)) != Slot(keys[0]) {
				t.Fatalf("slot of %q: got %d, want %d", l.Channel(name), Slot(l.Channel(name)), Slot(keys[0]))
			}
			if got, ok := l.Semaphore(keys[0]); !ok || got != name {
				t.Fatalf("name of %q: got %q, want %q", keys[0], got, name)
			}
			if other, taken := seen[keys[0]]; taken && other != name {
				t.Fatalf("%q and %q have the same keys", name, other)
			}
			seen[keys[0]] = name
		})
	}
}

func TestOtherKeysTellNoName(t *testing.T) {
	l := layout(t, "sem:", TagAuto, true)
	for _, key := range []string{"", "sem:", "sem:a:permits", "sem:{}:permits", "sem:{a}:grants", "sem:{a}:wake", "other:{a}:permits", "sem:{b}:registry"} {
		if name, ok := l.Semaphore(key); ok {
			t.Errorf("%q: got %q, want no name", key, name)
		}
	}
}

func TestWhatCannotWorkOnAClusterIsRefused(t *testing.T) {
	for _, c := range []struct {
		prefix  string
		tagging Tagging
		cluster bool
	}{{"sem:", TagNever, true}, {"{}", TagAuto, true}, {"a{", TagAuto, true}, {"sem:", "perhaps", false}} {
		if _, err := NewLayout(c.prefix, c.tagging, c.cluster); err == nil {
			t.Errorf("%+v: got no error, want one", c)
		}
	}
	if _, err := NewLayout("{app}:", TagNever, true); err != nil {
		t.Errorf("a prefix that is a tag by itself: got %v, want no error", err)
	}
}

func TestMatchFindsOurKeysAndNoOthers(t *testing.T) {
	r := newRig(t)
	l := layout(t, `a*[?]\:`, TagAuto, false)
	r.do("SET", l.Permits("x"), "1")
	r.do("SET", "ab[?]\\:x", "1")

	got := r.do("KEYS", l.Match())

	equal(t, "keys", fmt.Sprint(got), "["+l.Permits("x")+"]")
}

// newClusterRig works on a Redis Cluster.
func newClusterRig(t *testing.T) *rig {
	t.Helper()
	cluster := redisd.RunCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), MaxRedirects: 3})
	t.Cleanup(func() { _ = client.Close() })
	return &rig{TB: t, redis: client, lib: NewLibrary(layout(t, "sem:", TagAuto, true)), server: 1, limits: semaphore.DefaultLimits()}
}

func TestAllStepsRunOnARedisCluster(t *testing.T) {
	r := newClusterRig(t)
	want := map[string]int{}
	for i := range 30 {
		key := fmt.Sprintf("k%d", i)
		want[key] = 1
		r.create(key, 2)
		r.acquire(key, "h", time.Minute)
		other := r.beside()
		other.step(key, line(waiter("w", 2, 100)))
		o := r.step(key, &Step{Ops: []Op{{Request: semaphore.Release{Key: key, Holder: "h"}, Ticket: r.ticket()}}})
		equal(t, "reserved for the other", o.Free, 0)
		equal(t, "served there", fmt.Sprint(served(other.step(key, line(waiter("w", 2, 100))))), "[w]")
		equal(t, "in use", r.info(key).InUse, 2)
		equal(t, "usage", r.care(semaphore.Resize{Key: key, Capacity: 3}).Value.(semaphore.Usage).Available, 1)
		equal(t, "reconciled", r.care(semaphore.Reconcile{Key: key}).Value.(semaphore.Number), 0)
		equal(t, "gone", r.tend(key).Gone, false)
	}
	for _, name := range r.names(7) {
		want[name]--
	}
	for name, left := range want {
		if left != 0 {
			t.Errorf("%s: seen %d times, want once", name, 1-left)
		}
		equal(t, "deleted", r.care(semaphore.Delete{Key: name, Force: true}).Value.(semaphore.Number), 1)
	}
	equal(t, "names", len(r.names(7)), 0)
}

func TestAShardedMessageReachesWhoHasSubscribed(t *testing.T) {
	r := newClusterRig(t)
	client := r.redis.(*redis.ClusterClient)
	messages := client.SSubscribe(context.Background(), r.lib.layout.Channel("k"))
	defer messages.Close()
	if _, err := messages.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.create("k", 1)
	r.care(semaphore.Resize{Key: "k", Capacity: 2})

	m := <-messages.Channel()

	if !strings.HasPrefix(m.Payload, "changed * ") {
		t.Errorf("got %q, want news of a change", m.Payload)
	}
}
