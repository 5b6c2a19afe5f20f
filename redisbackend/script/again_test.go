package script

import (
	"errors"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func one(q semaphore.Request, t semaphore.Ticket, again bool) *Step {
	return &Step{Ops: []Op{{Request: q, Ticket: t, Again: again}}}
}

func TestNothingIsDoneAfterNotAfter(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	stamp := r.stamp()
	stamp.NotAfter = r.clock() - 1

	_, err := r.try("k", stamp, one(semaphore.Acquire{Key: "k", Holder: "h", Permits: 1}, r.ticket(), false))

	if !errors.Is(err, ErrVoid) {
		t.Errorf("error: got %v, want %v", err, ErrVoid)
	}
	r.books("k", 1, 0)
}

func TestACallThatWasOvertakenDoesNothing(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	late := r.stamp()
	r.acquire("k", "h", time.Minute)

	_, err := r.try("k", late, one(semaphore.Release{Key: "k", Holder: "h"}, r.ticket(), false))

	if !errors.Is(err, ErrVoid) {
		t.Errorf("error: got %v, want %v", err, ErrVoid)
	}
	r.books("k", 0, 1)
}

func TestACallThatWasOvertakenMakesNoSemaphore(t *testing.T) {
	r := newRig(t)
	a := semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Create: true, Capacity: 1}
	lost, ticket := r.stamp(), r.ticket()
	o, err := r.try("k", r.stamp(), one(GiveBack{Key: "k", Holder: "h", Ticket: ticket}, r.ticket(), false))
	if err != nil || !o.Gone {
		t.Fatalf("give back: got %+v, %v, want no semaphore", o, err)
	}

	_, err = r.try("k", lost, one(a, ticket, false))

	if !errors.Is(err, ErrVoid) {
		t.Errorf("error: got %v, want %v", err, ErrVoid)
	}
	equal(t, "capacity", r.do("HGET", "sem:k:meta", "capacity"), nil)
}

func TestTheSameCallTwiceTakesEffectOnce(t *testing.T) {
	r := newRig(t)
	r.create("k", 3)
	r.acquire("k", "old", time.Minute)
	stamp := r.stamp()
	step := func() *Step {
		return &Step{Ops: []Op{
			{Request: semaphore.Acquire{Key: "k", Holder: "new", Permits: 1}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 71}},
			{Request: semaphore.Release{Key: "k", Holder: "old"}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 72}},
			{Request: semaphore.Release{Key: "k", Holder: "nobody"}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 73}},
		}}
	}
	first, err := r.try("k", stamp, step())
	if err != nil {
		t.Fatal(err)
	}
	other := r.beside()
	other.acquire("k", "old", time.Minute)
	other.acquire("k", "nobody", time.Minute)

	second, err := r.try("k", stamp, step())

	if err != nil {
		t.Fatal(err)
	}
	got, want := second.Ops[0].Value.(*semaphore.Grant), first.Ops[0].Value.(*semaphore.Grant)
	if got.Token != want.Token || got.Replayed {
		t.Errorf("acquire: got %+v, want %+v as the first time", got, want)
	}
	equal(t, "release", second.Ops[1].Value.(semaphore.Number), 1)
	equal(t, "release of what was not held", second.Ops[2].Value.(semaphore.Number), 0)
	r.books("k", 0, 3)
}

func TestAReleaseWhoseReplyWasLostIsAnsweredAsItWas(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	g := r.acquire("k", "h", time.Minute)
	r.acquire("k", "i", time.Minute)
	lost := []Op{
		{Request: semaphore.Release{Key: "k", Holder: "h", Token: g.Token}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 81}},
		{Request: semaphore.Release{Key: "k", Holder: "i"}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 82}},
	}
	r.step("k", &Step{Ops: lost})
	r.beside().acquire("k", "h", time.Minute)

	for i := range lost {
		lost[i].Again = true
		equal(t, "release asked for again, alone", r.step("k", &Step{Ops: lost[i : i+1]}).Ops[0].Value.(semaphore.Number), 1)
	}

	r.books("k", 1, 1)
	equal(t, "release under another ticket", r.number(semaphore.Release{Key: "k", Holder: "i"}), 0)
}

func TestAnAcquireAndAReleaseThatWereLostTogetherLeaveNothing(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	lost := []Op{
		{Request: semaphore.Acquire{Key: "k", Holder: "h", Permits: 1}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 91}},
		{Request: semaphore.Release{Key: "k", Holder: "h"}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 92}},
	}
	r.step("k", &Step{Ops: lost})
	lost[0].Again, lost[1].Again = true, true

	o := r.step("k", &Step{Ops: lost})

	if _, granted := o.Ops[0].Value.(*semaphore.Grant); !granted {
		t.Errorf("acquire: got %+v, want a grant", o.Ops[0])
	}
	equal(t, "release", o.Ops[1].Value.(semaphore.Number), 1)
	r.books("k", 1, 0)
}

func TestARepeatUnderTheSameTicketIsNoReplay(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	a, ticket := semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Fresh: true}, semaphore.Ticket{Incarnation: 1, Number: 5}
	first := r.step("k", one(a, ticket, false)).Ops[0].Value.(*semaphore.Grant)

	again := r.step("k", one(a, ticket, true)).Ops[0].Value.(*semaphore.Grant)
	equal(t, "token under the same ticket", again.Token, first.Token)
	equal(t, "replayed under the same ticket", again.Replayed, false)

	fresh := r.step("k", one(a, semaphore.Ticket{Incarnation: 1, Number: 6}, false)).Ops[0].Value.(*semaphore.Grant)
	if fresh.Token <= first.Token || fresh.Replayed {
		t.Errorf("under another ticket with FRESH: got %+v, want a token above %d", fresh, first.Token)
	}
	r.books("k", 0, 1)
}

func TestAGrantIsGivenBackUnlessItWasReplayedOrRenewed(t *testing.T) {
	cases := map[string]struct {
		between semaphore.Request
		want    int64
	}{
		"untouched": {semaphore.Check{Key: "k", Holder: "h", Token: 1}, 1},
		"replayed":  {semaphore.Acquire{Key: "k", Holder: "h", Permits: 1}, 0},
		"renewed":   {semaphore.Renew{Key: "k", Holder: "h"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.create("k", 1)
			g := r.acquire("k", "h", time.Minute)
			r.ask(c.between)
			wrong := GiveBack{Key: "k", Holder: "h", Token: g.Token + 1, Ticket: g.Ticket}
			equal(t, "given back under another token", r.number(wrong), 0)

			got := r.number(GiveBack{Key: "k", Holder: "h", Token: g.Token, Ticket: g.Ticket})

			equal(t, "given back", got, c.want)
			r.books("k", c.want, 1-c.want)
			equal(t, "grants", r.info("k").Counters.GrantsImmediate, 1-c.want)
		})
	}
}

func TestAGrantIsGivenBackByItsTicketAlone(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	g := r.acquire("k", "h", time.Minute)

	equal(t, "given back", r.number(GiveBack{Key: "k", Holder: "h", Ticket: g.Ticket}), 1)
	r.books("k", 1, 0)
}

func TestACareRequestIsAnsweredAsTheFirstTime(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	r.do("LPOP", "sem:k:permits")
	ticket := semaphore.Ticket{Incarnation: 1, Number: 500}
	reconcile := semaphore.Reconcile{Key: "k"}
	remove := semaphore.Delete{Key: "k"}
	for range 2 {
		equal(t, "reconcile", r.answer(reconcile, r.lib.Reconcile(r.stamp(), reconcile, ticket, 0)), any(semaphore.Number(1)))
	}
	for range 2 {
		equal(t, "delete", r.answer(remove, r.lib.Delete(r.stamp(), remove, ticket)), any(semaphore.Number(1)))
	}
	equal(t, "delete under another ticket", r.care(remove).Value.(semaphore.Number), 0)
}

// answer makes a call and returns the value that it is answered with.
func (r *rig) answer(q semaphore.Request, c Call) any {
	r.Helper()
	raw, err := r.send(c)
	if err != nil {
		r.Fatal(err)
	}
	a, err := ReadAnswer(q, raw)
	if err != nil || a.Err != nil {
		r.Fatalf("%+v: %v, %v", q, err, a.Err)
	}
	return a.Value
}
