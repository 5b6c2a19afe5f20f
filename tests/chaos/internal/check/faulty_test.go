package check

import (
	"slices"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// What the semaphore of a world does, and how it can be wrong.

func done(n int64) history.Result { return history.Result{Outcome: history.Done, Number: n} }

func (w *world) inUse() int64 {
	var n int64
	for _, l := range w.held {
		n += l.permits
	}
	return n
}

func (w *world) acquire(r *request) {
	w.expire()
	if i := w.find(r.op); i >= 0 {
		told := w.held[i].Grant
		told.Replayed, told.Lease = true, w.held[i].end-w.now
		r.answer(history.Result{Outcome: history.Done, Grant: told})
		return
	}
	w.line = append(w.line, r)
	w.serve()
	if r.answered {
		return
	}
	if r.op.Wait == 0 {
		w.leave(r)
		return
	}
	w.after(r.op.Wait, func() { w.expire(); w.leave(r) })
}

func (w *world) leave(r *request) {
	i := slices.Index(w.line, r)
	if i < 0 {
		return
	}
	w.line = slices.Delete(w.line, i, i+1)
	r.answer(history.Result{Outcome: history.Null})
	if w.wrong("grants after null") {
		w.grant(r)
	}
	w.serve()
}

// serve grants to the first in line, and to the next, as long as there is room.
func (w *world) serve() {
	for len(w.line) > 0 {
		first := 0
		if len(w.line) > 1 && w.wrong("overtakes") {
			first = 1
		}
		r := w.line[first]
		if w.inUse()+r.op.Permits > w.capacity && !w.wrong("grants too many") {
			return
		}
		w.line = slices.Delete(w.line, first, first+1)
		w.grant(r)
	}
}

func (w *world) grant(r *request) {
	w.token++
	token := w.token
	if w.wrong("repeats tokens") {
		w.token--
	}
	if w.wrong("lowers tokens") {
		w.token -= 3
	}
	l := &lease{history.Grant{Holder: r.op.Holder, Token: token, Slots: w.slots(r.op.Permits), Lease: r.op.Lease}, r.op.Permits, r.op.Lease, w.now + r.op.Lease}
	if !w.wrong("forgets grants") {
		w.held = append(w.held, l)
	}
	w.extend(l)
	r.answer(history.Result{Outcome: history.Done, Grant: l.Grant})
}

// slots are the lowest free places.
func (w *world) slots(n int64) []int64 {
	var free []int64
	for slot := int64(0); int64(len(free)) < n; slot++ {
		if !slices.ContainsFunc(w.held, func(l *lease) bool { return slices.Contains(l.Slots, slot) }) {
			free = append(free, slot)
		}
	}
	return free
}

// extend gives a lease its whole length from now.
func (w *world) extend(l *lease) {
	l.end = w.now + l.length
	if w.wrong("ends leases early") {
		l.end -= l.length / 2
	}
	w.after(l.length, func() { w.expire() })
}

func (w *world) expire() {
	w.held = slices.DeleteFunc(w.held, func(l *lease) bool { return l.end <= w.now })
	w.serve()
}

func (w *world) release(r *request) {
	w.expire()
	i := w.find(r.op)
	if i < 0 {
		if w.wrong("releases twice") {
			r.answer(done(1))
			return
		}
		r.answer(done(0))
		return
	}
	if !w.wrong("forgets releases") {
		w.held = slices.Delete(w.held, i, i+1)
	}
	w.serve()
	r.answer(done(1))
}

func (w *world) renew(r *request) {
	w.expire()
	i := w.find(r.op)
	if i < 0 {
		r.answer(done(0))
		return
	}
	if !w.wrong("forgets renewals") {
		w.extend(w.held[i])
	}
	r.answer(done(w.held[i].length.Milliseconds()))
}

func (w *world) check(r *request) {
	w.expire()
	if w.find(r.op) < 0 {
		r.answer(done(0))
		return
	}
	r.answer(done(1))
}

func (w *world) list(r *request) {
	var holders []string
	for _, waiting := range w.line {
		holders = append(holders, waiting.op.Holder)
	}
	r.answer(history.Result{Outcome: history.Done, Line: holders})
}

func (w *world) count(r *request) {
	w.expire()
	n := w.inUse()
	r.answer(history.Result{Outcome: history.Done, Books: history.Books{Capacity: w.capacity, InUse: n, Available: w.capacity - n}})
}

func worldSetup(capacity int64) Setup {
	return Setup{Capacity: map[string]int64{"k": capacity}, Hold: 50 * time.Millisecond, Grace: 50 * time.Millisecond, Slack: 20 * time.Millisecond}
}

func TestHistoriesOfARightWorldPass(t *testing.T) {
	for seed := range uint64(24) {
		capacity := int64(1 + seed%3)
		l := play(seed, capacity, "", 3*time.Second)
		for _, v := range Promises(l, worldSetup(capacity)) {
			t.Errorf("seed %d: got %v, want no promise broken", seed, v)
		}
		for _, v := range Linearizable(l, worldSetup(capacity), limit) {
			if !v.Linear {
				t.Errorf("seed %d: got no order (undecided: %v) of %d, want one\n%s", seed, v.Undecided, v.Steps, v.What)
			}
		}
	}
}

// Each fault is found in most of its worlds; in some it does not show.
func TestWorldsWithAFaultAreFound(t *testing.T) {
	const worlds = 12
	for fault, promise := range map[string]string{
		"grants too many": "capacity", "repeats tokens": "tokens", "lowers tokens": "tokens", "forgets grants": "acknowledged grants",
		"ends leases early": "acknowledged grants", "forgets releases": "releases", "forgets renewals": "acknowledged grants",
		"releases twice": "releases", "overtakes": "line", "grants after null": "",
	} {
		t.Run(fault, func(t *testing.T) {
			named, unordered := 0, 0
			for seed := range uint64(worlds) {
				capacity := int64(1 + seed%3)
				l := play(seed, capacity, fault, 3*time.Second)
				found := Promises(l, worldSetup(capacity))
				if breaks(found, promise) || promise == "" && len(found) > 0 {
					named++
				}
				for _, v := range Linearizable(l, worldSetup(capacity), 20*time.Second) {
					if !v.Linear && !v.Undecided {
						unordered++
					}
				}
			}
			t.Logf("%d of %d break a promise by name, %d have no order", named, worlds, unordered)
			if named < worlds/2 && unordered < worlds/2 {
				t.Errorf("got %d and %d of %d worlds found, want most", named, unordered, worlds)
			}
		})
	}
}
