package script

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// contents are what a semaphore consists of, but for its counters.
func (r *rig) contents(key string) string {
	r.Helper()
	l := r.lib.layout
	return fmt.Sprint(r.do("LRANGE", l.Permits(key), 0, -1), r.do("ZRANGE", l.Holders(key), 0, -1, "WITHSCORES"),
		r.do("HGETALL", l.stem(key)+grantsEnd), r.do("ZRANGE", l.stem(key)+slotsEnd, 0, -1), r.info(key).LastToken)
}

// Whatever way calls that were made once are made again, early or late, in whatever order, nothing is
// taken or freed but what they were answered with at first.
func TestCallsThatAreMadeAgainLateOrOutOfOrderChangeNothing(t *testing.T) {
	r, n := newRig(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		key := fmt.Sprintf("k%d", n)
		r.create(key, rapid.Int64Range(1, 4).Draw(t, "capacity"))
		other := r.beside()
		var made []Call
		var steps []*Step
		ticket := uint64(0)
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			s := &Step{Limits: r.limits}
			for range rapid.IntRange(1, 3).Draw(t, "ops") {
				ticket++
				holder := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "holder")
				var q semaphore.Request = semaphore.Acquire{Key: key, Holder: holder, Permits: 1, Lease: time.Hour}
				if rapid.Bool().Draw(t, "release") {
					q = semaphore.Release{Key: key, Holder: holder}
				}
				s.Ops = append(s.Ops, Op{Request: q, Ticket: semaphore.Ticket{Incarnation: r.server, Number: ticket}})
			}
			c, err := r.lib.Serve(key, r.stamp(), s)
			if err != nil {
				t.Fatal(err)
			}
			made, steps = append(made, c), append(steps, s)
			first := sent(t, r, c, s)
			if rapid.Bool().Draw(t, "another server comes in between") {
				holder := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "holder")
				other.ask(semaphore.Acquire{Key: key, Holder: holder, Permits: 1, Lease: time.Hour})
			}
			before := other.contents(key)
			for range rapid.IntRange(0, 3).Draw(t, "again") {
				i := rapid.IntRange(0, len(made)-1).Draw(t, "which")
				o := sent(t, r, made[i], steps[i])
				if (o == nil) != (i < len(made)-1) {
					t.Fatalf("call %d of %d: got %+v, want that only the latest one is answered", i, len(made), o)
				}
				if o != nil {
					sameReleases(t, s, first, o)
				}
			}
			if got := other.contents(key); got != before {
				t.Fatalf("made again:\ngot  %s\nwant %s", got, before)
			}
		}
	})
}

// sent makes a call; nil: it did nothing.
func sent(t *rapid.T, r *rig, c Call, s *Step) *Outcome {
	raw, err := r.send(c)
	if err != nil {
		t.Fatal(err)
	}
	o, err := ReadServe(s, raw)
	if errors.Is(err, ErrVoid) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func sameReleases(t *rapid.T, s *Step, first, second *Outcome) {
	for i, op := range s.Ops {
		if _, isRelease := op.Request.(semaphore.Release); isRelease && first.Ops[i] != second.Ops[i] {
			t.Fatalf("release %+v: got %+v, want %+v as the first time", op, second.Ops[i], first.Ops[i])
		}
	}
}

func TestACareRequestThatIsMadeAgainLateChangesNothing(t *testing.T) {
	r := newRig(t)
	other := r.beside()
	create := r.lib.Create(r.stamp(), semaphore.Create{Key: "k", Capacity: 2}, 0)
	r.answer(semaphore.Create{}, create)
	resize := r.lib.Resize(r.stamp(), semaphore.Resize{Key: "k", Capacity: 3})
	r.answer(semaphore.Resize{}, resize)
	other.care(semaphore.Resize{Key: "k", Capacity: 4})
	remove := r.lib.Delete(r.stamp(), semaphore.Delete{Key: "k"}, r.ticket())

	r.void(create)
	r.answer(semaphore.Resize{}, resize)
	equal(t, "capacity", other.info("k").Capacity, 4)
	r.answer(semaphore.Delete{}, remove)
	r.void(create)
	r.void(resize)
	equal(t, "inspect", other.care(semaphore.Inspect{Key: "k"}).Err, error(semaphore.ErrNoSemaphore))
	other.create("k", 5)
	r.answer(semaphore.Delete{}, remove)
	equal(t, "capacity", other.info("k").Capacity, 5)
}

// void wants a call to do nothing.
func (r *rig) void(c Call) {
	r.Helper()
	raw, err := r.send(c)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := open(raw); !errors.Is(err, ErrVoid) {
		r.Errorf("%s: got %v, want that it does nothing", c.Script.Name, raw)
	}
}
