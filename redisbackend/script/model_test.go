package script

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// model is what a semaphore should be, in the simplest words. Leases last for an hour, or have ended.
type model struct {
	capacity int64
	held     map[string]*modelGrant
	last     int64
	stale    bool // a grant was released by hand: its slot is not known to be free
}

type modelGrant struct {
	token   int64
	permits int64
	slots   map[int64]bool // none: a raw holder
}

func (m *model) inUse() (n int64) {
	for _, g := range m.held {
		n += g.permits
	}
	return n
}

func (m *model) taken(place int64) bool {
	for _, g := range m.held {
		if g.slots[place] {
			return true
		}
	}
	return false
}

// lowest are the places that the next grant should get.
func (m *model) lowest(n int64) map[int64]bool {
	places := map[int64]bool{}
	for place := int64(0); int64(len(places)) < n; place++ {
		if !m.taken(place) {
			places[place] = true
		}
	}
	return places
}

func places(g *semaphore.Grant) map[int64]bool {
	all := map[int64]bool{}
	for _, r := range g.Slots {
		for place := r.First; place <= r.Last; place++ {
			all[place] = true
		}
	}
	return all
}

// world is a Redis and a model of one semaphore in it.
type world struct {
	*rapid.T
	rig *rig
	key string
	m   *model
}

func TestASemaphoreDoesWhatTheModelSays(t *testing.T) {
	r, n := newRig(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		w := &world{T: t, rig: r, key: fmt.Sprintf("k%d", n), m: &model{capacity: rapid.Int64Range(0, 6).Draw(t, "capacity"), held: map[string]*modelGrant{}}}
		r.create(w.key, w.m.capacity)
		t.Repeat(map[string]func(*rapid.T){
			"acquire":    func(t *rapid.T) { w.T = t; w.acquire() },
			"release":    func(t *rapid.T) { w.T = t; w.release() },
			"renew":      func(t *rapid.T) { w.T = t; w.renew() },
			"check":      func(t *rapid.T) { w.T = t; w.check() },
			"end":        func(t *rapid.T) { w.T = t; w.end() },
			"resize":     func(t *rapid.T) { w.T = t; w.resize() },
			"reconcile":  func(t *rapid.T) { w.T = t; w.reconcile() },
			"tend":       func(t *rapid.T) { w.T = t; w.tend() },
			"take raw":   func(t *rapid.T) { w.T = t; w.takeByHand() },
			"return raw": func(t *rapid.T) { w.T = t; w.releaseByHand() },
			"":           func(t *rapid.T) { w.T = t; w.balance() },
		})
	})
}

func (w *world) holder() string {
	names := []string{"a", "b", "\x00semserver:x", "\x00", "e\r\nf", string([]byte{255, 254})}
	return rapid.SampledFrom(names).Draw(w.T, "holder")
}

func (w *world) acquire() {
	a := semaphore.Acquire{
		Key: w.key, Holder: w.holder(), Permits: rapid.Int64Range(1, 3).Draw(w.T, "permits"), Lease: time.Hour,
		Fresh: rapid.Bool().Draw(w.T, "fresh"),
	}
	got := w.rig.ask(a)
	g, granted := got.Value.(*semaphore.Grant)
	had := w.m.held[a.Holder]
	switch {
	case had != nil && had.permits != a.Permits:
		w.refused(got, semaphore.CodeConflict)
	case had != nil && had.slots != nil && !a.Fresh:
		if !granted || !g.Replayed || g.Token != had.token || !maps.Equal(places(g), had.slots) {
			w.Fatalf("acquire by who holds: got %+v, want a replay of %+v", got, had)
		}
	case had != nil:
		want := had.slots
		if want == nil {
			want = w.m.lowest(1)
		}
		w.granted(got, a, want)
	case w.m.capacity > 0 && a.Permits > w.m.capacity:
		w.refused(got, semaphore.CodeTooMany)
	case w.m.inUse()+a.Permits > w.m.capacity:
		if got.Value != nil || got.Err != nil {
			w.Fatalf("acquire of %d beside %d of %d: got %+v, want nothing", a.Permits, w.m.inUse(), w.m.capacity, got)
		}
	default:
		w.granted(got, a, w.m.lowest(a.Permits))
	}
}

func (w *world) refused(got Result, code semaphore.Code) {
	if e, ok := got.Err.(*semaphore.Error); !ok || e.Code != code {
		w.Fatalf("got %+v, want %s", got, code)
	}
}

func (w *world) granted(got Result, a semaphore.Acquire, slots map[int64]bool) {
	g, ok := got.Value.(*semaphore.Grant)
	if !ok || g.Replayed || g.Token <= w.m.last || g.Holder != a.Holder {
		w.Fatalf("acquire: got %+v, want a new grant above %d", got, w.m.last)
	}
	if had := w.m.held[a.Holder]; w.m.stale && (had == nil || had.slots == nil) {
		slots = places(g)
		for place := range slots {
			if place >= max(w.m.capacity, w.m.inUse()) || w.m.taken(place) {
				w.Fatalf("slot: got %d of %d, beside %+v", place, w.m.capacity, w.m.held)
			}
		}
	}
	if !maps.Equal(places(g), slots) {
		w.Fatalf("slots: got %v, want %v", slices.Sorted(maps.Keys(places(g))), slices.Sorted(maps.Keys(slots)))
	}
	w.m.last = g.Token
	w.m.held[a.Holder] = &modelGrant{token: g.Token, permits: a.Permits, slots: slots}
}

func (w *world) want(what string, got, want int64) {
	if got != want {
		w.Fatalf("%s: got %d, want %d; books %+v", what, got, want, w.m)
	}
}

func (w *world) release() {
	holder := w.holder()
	r := semaphore.Release{Key: w.key, Holder: holder, Token: w.token(holder)}
	want := int64(0)
	if g := w.m.held[holder]; g != nil && (r.Token == 0 || r.Token == g.token) {
		want = 1
		delete(w.m.held, holder)
	}
	w.want("release", w.rig.number(r), want)
}

// token is none, or that of the holder, or another.
func (w *world) token(holder string) int64 {
	g := w.m.held[holder]
	switch rapid.IntRange(0, 2).Draw(w.T, "token") {
	case 0:
		return 0
	case 1:
		if g != nil {
			return g.token
		}
	}
	return 7
}

func (w *world) renew() {
	holder := w.holder()
	r := semaphore.Renew{Key: w.key, Holder: holder, Token: w.token(holder), Lease: time.Hour}
	want := int64(0)
	if g := w.m.held[holder]; g != nil && (r.Token == 0 || r.Token == g.token) {
		want = time.Hour.Milliseconds()
	}
	w.want("renew", w.rig.number(r), want)
}

func (w *world) check() {
	holder := w.holder()
	token := w.token(holder)
	want := int64(0)
	if g := w.m.held[holder]; g != nil && g.slots != nil && g.token == token {
		want = 1
	}
	w.want("check", w.rig.number(semaphore.Check{Key: w.key, Holder: holder, Token: token}), want)
}

// end has a lease run out.
func (w *world) end() {
	holder := w.holder()
	if w.m.held[holder] == nil {
		return
	}
	w.want("renew", w.rig.number(semaphore.Renew{Key: w.key, Holder: holder, Lease: time.Millisecond}), 1)
	for end := w.rig.clock() + 1; w.rig.clock() <= end; {
	}
	delete(w.m.held, holder)
}

func (w *world) resize() {
	w.m.capacity = rapid.Int64Range(0, 6).Draw(w.T, "capacity")
	got := w.rig.care(semaphore.Resize{Key: w.key, Capacity: w.m.capacity})
	want := semaphore.Usage{Capacity: w.m.capacity, InUse: w.m.inUse(), Available: max(0, w.m.capacity-w.m.inUse())}
	if got.Value != want {
		w.Fatalf("resize: got %+v, want %+v", got, want)
	}
}

func (w *world) reconcile() {
	if got := w.rig.care(semaphore.Reconcile{Key: w.key}); got.Err != nil {
		w.Fatalf("reconcile: %v", got.Err)
	}
	w.m.stale = false
	w.want("free after a reconcile", w.rig.do("LLEN", w.rig.lib.layout.Permits(w.key)).(int64), max(0, w.m.capacity-w.m.inUse()))
	w.want("held after a reconcile", w.rig.do("ZCARD", w.rig.lib.layout.Holders(w.key)).(int64), w.m.inUse())
}

func (w *world) tend() {
	raw, err := w.rig.send(w.rig.lib.Tend(w.rig.stamp(), w.key))
	if err != nil {
		w.Fatal(err)
	}
	d, err := ReadTend(raw)
	if err != nil || d.Gone || d.More || d.Missing != 0 {
		w.Fatalf("tend: got %+v, %v, want a semaphore that balances", d, err)
	}
}

func (w *world) takeByHand() {
	holder := w.holder()
	if w.m.held[holder] != nil || len(holder) > 0 && holder[0] == 0 {
		return
	}
	if w.rig.do("LPOP", w.rig.lib.layout.Permits(w.key)) == nil {
		return
	}
	w.rig.do("ZADD", w.rig.lib.layout.Holders(w.key), w.rig.clock()+time.Hour.Milliseconds(), holder)
	w.m.held[holder] = &modelGrant{permits: 1}
}

// releaseByHand is what a raw client's script does. Beyond the capacity it pushes too, as such scripts do.
func (w *world) releaseByHand() {
	holder := w.holder()
	g := w.m.held[holder]
	if g == nil || g.permits != 1 || len(holder) > 0 && holder[0] == 0 || w.m.inUse() > w.m.capacity {
		return
	}
	if w.rig.do("ZREM", w.rig.lib.layout.Holders(w.key), holder) == int64(1) {
		w.rig.do("RPUSH", w.rig.lib.layout.Permits(w.key), "p")
		w.m.stale = w.m.stale || g.slots != nil
		delete(w.m.held, holder)
	}
}

// balance compares the figures.
func (w *world) balance() {
	i := w.rig.info(w.key)
	w.want("in use", i.InUse, w.m.inUse())
	w.want("available", i.Available, max(0, w.m.capacity-w.m.inUse()))
	w.want("excess", i.Excess, max(0, w.m.inUse()-w.m.capacity))
	w.want("missing", i.Missing, 0)
	w.want("surplus", i.Surplus, 0)
	w.want("holders", i.Holders, int64(len(w.m.held)))
	w.want("latest token", i.LastToken, w.m.last)
}

// clock is Redis's, in milliseconds.
func (r *rig) clock() int64 {
	r.Helper()
	t, err := r.redis.Time(context.Background()).Result()
	if err != nil {
		r.Fatal(err)
	}
	return t.UnixMilli()
}
