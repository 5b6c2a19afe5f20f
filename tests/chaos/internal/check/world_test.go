package check

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// world is a semaphore and its clients in virtual time: a history of it is right by construction,
// unless a fault is built into it.
type world struct {
	*rand.Rand
	capacity int64
	fault    string // what it does wrong, now and then
	events   events
	now      time.Duration
	token    int64
	held     []*lease
	line     []*request
	ops      []history.Op
	clients  int
	until    time.Duration
}

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// lease is a grant as the semaphore has it.
type lease struct {
	history.Grant
	permits int64
	length  time.Duration
	end     time.Duration
}

// request is one that is under way.
type request struct {
	op       history.Op
	answer   func(history.Result)
	answered bool
}

// play plays a world to its end and returns its history.
func play(seed uint64, capacity int64, fault string, length time.Duration) history.Log {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), capacity: capacity, fault: fault, until: length}
	for range 6 {
		w.clients++
		w.after(w.upTo(50*time.Millisecond), w.attempt(w.clients, 0))
	}
	w.after(0, w.look)
	for len(w.events) > 0 {
		next := heap.Pop(&w.events).(event)
		w.now = next.at
		next.do()
	}
	return recorded(w.ops)
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

func (w *world) after(d time.Duration, do func()) { heap.Push(&w.events, event{w.now + d, do}) }

// wrong is whether the world does this wrong thing now.
func (w *world) wrong(what string) bool { return w.fault == what && w.IntN(4) == 0 }

// ask sends a request, which takes effect a little later and is answered a little later still. Some
// answers are lost, and some requests.
func (w *world) ask(client int, o history.Op, effect func(*request), then func(history.Result)) {
	o.Client, o.Key, o.Call = client, "k", w.now
	r := &request{op: o}
	lost, never := w.IntN(30) == 0, w.IntN(2) == 0
	r.answer = func(result history.Result) {
		if r.answered {
			return
		}
		r.answered = true
		if lost {
			result = history.Result{Outcome: history.Unknown, Code: history.Broken}
		}
		w.after(w.upTo(8*time.Millisecond), func() {
			r.op.Return, r.op.Result = w.now, result
			w.ops = append(w.ops, r.op)
			then(result)
		})
	}
	w.after(w.upTo(8*time.Millisecond), func() {
		if lost && never {
			r.answer(history.Result{})
			return
		}
		effect(r)
	})
}

// attempt is a client's work under one holder's id.
func (w *world) attempt(client, n int) func() {
	return func() {
		if w.now > w.until {
			return
		}
		o := history.Op{Kind: history.Acquire, Holder: fmt.Sprint("h", client, ".", n), Permits: 1, Lease: 200 * time.Millisecond}
		if w.capacity > 1 && w.IntN(4) == 0 {
			o.Permits = 2
		}
		if w.IntN(3) > 0 {
			o.Wait = 50*time.Millisecond + w.upTo(300*time.Millisecond)
		}
		next := func(history.Result) { w.after(w.upTo(20*time.Millisecond), w.attempt(client, n+1)) }
		w.ask(client, o, w.acquire, func(r history.Result) {
			switch r.Outcome {
			case history.Done:
				w.hold(client, o, r.Grant, next)
			case history.Unknown:
				w.ask(client, o, w.acquire, func(r history.Result) {
					if r.Outcome == history.Done {
						w.hold(client, o, r.Grant, next)
						return
					}
					next(r)
				})
			default:
				next(r)
			}
		})
	}
}

// hold does something with a grant, and then something else.
func (w *world) hold(client int, o history.Op, g history.Grant, next func(history.Result)) {
	again := func(history.Result) { w.hold(client, o, g, next) }
	named := history.Op{Holder: o.Holder, Token: g.Token, Lease: o.Lease}
	w.after(w.upTo(60*time.Millisecond), func() {
		switch w.IntN(6) {
		case 0:
			named.Kind = history.Check
			w.ask(client, named, w.check, again)
		case 1:
			named.Kind = history.Renew
			w.ask(client, named, w.renew, again)
		case 2:
			o.Wait = 0
			w.ask(client, o, w.acquire, func(r history.Result) {
				if r.Outcome == history.Done {
					g = r.Grant
				}
				w.hold(client, o, g, next)
			})
		case 3: // let it end
			w.after(w.upTo(400*time.Millisecond), func() { named.Kind = history.Check; w.ask(client, named, w.check, next) })
		case 4:
			named.Kind = history.Release
			w.ask(client, named, w.release, func(history.Result) { w.ask(client, named, w.release, next) })
		default:
			named.Kind = history.Release
			w.ask(client, named, w.release, next)
		}
	})
}

// look lists the line and counts, again and again.
func (w *world) look() {
	if w.now > w.until {
		return
	}
	w.ask(0, history.Op{Kind: history.Waiters}, w.list, func(history.Result) {
		w.ask(0, history.Op{Kind: history.Count}, w.count, func(history.Result) { w.after(w.upTo(20*time.Millisecond), w.look) })
	})
}

func (w *world) find(o history.Op) int {
	return slices.IndexFunc(w.held, func(l *lease) bool { return l.Holder == o.Holder && (o.Token == 0 || l.Token == o.Token) })
}
