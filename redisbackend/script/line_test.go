package script

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// waiter is a candidate who wants permits and joined the line at a time.
func waiter(holder string, permits, arrival int64) Candidate {
	return Candidate{
		Acquire: &semaphore.Acquire{Key: "k", Holder: holder, Permits: permits, Lease: time.Minute, Wait: time.Minute},
		Ticket:  semaphore.Ticket{Incarnation: 9, Number: uint64(arrival)}, Waited: 5 * time.Millisecond, Arrival: arrival,
	}
}

func line(candidates ...Candidate) *Step {
	return &Step{Candidates: candidates, Head: candidates[0].Arrival}
}

// served names the holders that got a grant.
func served(o *Outcome) (holders []string) {
	for _, reply := range o.Served {
		if g, ok := reply.Value.(*semaphore.Grant); ok {
			holders = append(holders, g.Holder)
		} else {
			holders = append(holders, fmt.Sprint(reply.Err))
		}
	}
	return holders
}

func TestAReleaseHandsOverToTheHeadOfTheLine(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	r.acquire("k", "h", time.Minute)
	s := line(waiter("w1", 1, 100), waiter("w2", 1, 101))
	s.Ops = []Op{{Request: semaphore.Release{Key: "k", Holder: "h"}, Ticket: r.ticket()}}

	o := r.step("k", s)

	equal(t, "served", fmt.Sprint(served(o)), "[w1]")
	equal(t, "ticket", o.Served[0].Value.(*semaphore.Grant).Ticket, s.Candidates[0].Ticket)
	r.books("k", 0, 1)
	c := r.info("k").Counters
	equal(t, "grants to waiters", c.GrantsWaited, 1)
	equal(t, "time in line", c.WaitTotal, 5*time.Millisecond)
}

func TestNobodyOvertakesALargeRequestAtTheHead(t *testing.T) {
	r := newRig(t)
	r.create("k", 3)
	r.acquire("k", "h", time.Minute)
	s := line(waiter("large", 3, 100), waiter("small", 1, 101))
	s.Ops = []Op{
		{Request: semaphore.Acquire{Key: "k", Holder: "now", Permits: 1}, Ticket: r.ticket()},
		{Request: semaphore.Acquire{Key: "k", Holder: "later", Permits: 1, Wait: time.Second}, Ticket: semaphore.Ticket{Incarnation: 1, Number: 999}},
	}

	o := r.step("k", s)

	equal(t, "served", len(o.Served), 0)
	equal(t, "acquire without WAIT", o.Ops[0], Result{})
	equal(t, "acquire with WAIT joins", o.Ops[1].Joins, true)
	s = line(waiter("large", 3, 100), waiter("small", 1, 101))
	s.Ops = []Op{{Request: semaphore.Release{Key: "k", Holder: "h"}, Ticket: r.ticket()}}
	equal(t, "served after the release", fmt.Sprint(served(r.step("k", s))), "[large]")
	r.books("k", 0, 3)
}

func TestWhoIsBehindTheCandidatesComesBeforeTheOps(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	s := line(waiter("w1", 1, 100))
	s.Behind = true
	s.Ops = []Op{{Request: semaphore.Acquire{Key: "k", Holder: "now", Permits: 1}, Ticket: r.ticket()}}

	o := r.step("k", s)

	equal(t, "served", fmt.Sprint(served(o)), "[w1]")
	equal(t, "acquire", o.Ops[0], Result{})
	equal(t, "free for the line", o.Free, 1)
}

func TestACandidateThatWantsMoreThanTheCapacityIsToldSo(t *testing.T) {
	r := newRig(t)
	r.create("k", 5)
	r.care(semaphore.Resize{Key: "k", Capacity: 1})

	o := r.step("k", line(waiter("large", 3, 100), waiter("small", 1, 101)))

	equal(t, "served", fmt.Sprint(served(o)), "[TOOMANY 3 permits asked for, and the capacity is 1 small]")
}

func TestACandidateThatHoldsAlreadyGetsItsGrant(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	w := waiter("w", 1, 100)
	first := r.step("k", line(w)).Served[0].Value.(*semaphore.Grant)

	same := r.step("k", line(w)).Served[0].Value.(*semaphore.Grant)
	w.Ticket.Number++
	other := r.step("k", line(w)).Served[0].Value.(*semaphore.Grant)

	equal(t, "token under the same ticket", same.Token, first.Token)
	equal(t, "replayed under the same ticket", same.Replayed, false)
	equal(t, "replayed under another ticket", other.Replayed, true)
	r.books("k", 1, 1)
}

func TestAnEndedLeaseIsHandedOver(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	r.acquire("k", "h", 20*time.Millisecond)
	w := waiter("w", 1, 100)
	o := r.step("k", line(w))
	for len(o.Served) == 0 {
		if o.NextEnd < 0 || o.NextEnd > 20*time.Millisecond {
			t.Fatalf("next end: got %v, want that of the lease", o.NextEnd)
		}
		o = r.step("k", line(w))
	}
	equal(t, "served", fmt.Sprint(served(o)), "[w]")
	equal(t, "expirations", r.info("k").Counters.Expirations, 1)
}

func TestAfterARowOfHandOversOnePermitIsLeftInTheList(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	r.acquire("k", "w0", time.Minute)
	left := 0
	for i := range 40 {
		s := line(waiter(fmt.Sprintf("w%d", i+1), 1, int64(100+i)))
		s.Ops = []Op{{Request: semaphore.Release{Key: "k", Holder: fmt.Sprintf("w%d", i)}, Ticket: r.ticket()}}
		if o := r.step("k", s); len(o.Served) == 0 {
			left++
			equal(t, "free", o.Free, 1)
			r.books("k", 1, 0)
			s.Ops = nil
			equal(t, "served next", len(r.step("k", s).Served), 1)
		}
	}
	equal(t, "permits left in the List", left, 2)
}

// waits has a semaphore know that a server's head waits, for an hour without another call of it.
func (r *rig) waits(key string, arrival, want int64) {
	r.Helper()
	entry := fmt.Sprintf("@%d %d %d %d 0 0;", r.server, arrival, want, r.clock()+time.Hour.Milliseconds())
	r.do("HSET", r.lib.layout.stem(key)+metaEnd, "line", entry)
}

func TestAServerIsToldOfWhatIsLeftInTheListInsteadOfForItsHead(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	other := r.beside()
	messages := r.redis.Subscribe(context.Background(), r.lib.layout.Channel("k"))
	defer messages.Close()
	if _, err := messages.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.acquire("k", "w0", time.Minute)
	for i := range 17 {
		w := waiter(fmt.Sprintf("w%d", i+1), 1, int64(100+i))
		other.waits("k", w.Arrival, 1)
		r.ask(semaphore.Release{Key: "k", Holder: fmt.Sprintf("w%d", i)})
		m := <-messages.Channel()
		if got, err := ParseMessage(m.Payload); err != nil || got.News != Permit || got.To != other.server {
			t.Fatalf("release %d: got %+v, %v, want a permit for the other server", i, got, err)
		}
		left, _ := r.do("LLEN", "sem:k:permits").(int64)
		equal(t, fmt.Sprintf("left in the List by release %d", i), left == 1, i == 16)
		equal(t, "served", fmt.Sprint(served(other.step("k", line(w)))), "["+w.Acquire.Holder+"]")
	}
}

func TestThePermitGoesToTheServerWhoseHeadHasWaitedLongest(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	other := r.beside()
	r.acquire("k", "h", time.Minute)
	messages := r.redis.Subscribe(context.Background(), r.lib.layout.Channel("k"))
	defer messages.Close()
	if _, err := messages.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	other.waits("k", 100, 1)
	s := line(waiter("ours", 1, 200))
	s.Ops = []Op{{Request: semaphore.Release{Key: "k", Holder: "h"}, Ticket: r.ticket()}}

	o := r.step("k", s)

	equal(t, "served here", len(o.Served), 0)
	r.books("k", 0, 1)
	equal(t, "in use while it is reserved", r.info("k").InUse, 0)
	m := <-messages.Channel()
	got, err := ParseMessage(m.Payload)
	if want := (Message{News: Permit, To: other.server, From: r.server, Token: o.Token, Key: "k"}); err != nil || got != want {
		t.Errorf("message: got %+v, %v, want %+v", got, err, want)
	}
	equal(t, "acquire at the first server", r.ask(semaphore.Acquire{Key: "k", Holder: "x", Permits: 1}), Result{})
	equal(t, "served there", fmt.Sprint(served(other.step("k", line(waiter("theirs", 1, 100))))), "[theirs]")
	r.books("k", 0, 1)
}

func TestAReservationThatNobodyClaimsFallsFree(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	r.acquire("k", "h", time.Minute)
	r.beside().step("k", line(waiter("theirs", 1, 100)))
	s := line(waiter("ours", 1, 200))
	s.Ops = []Op{{Request: semaphore.Release{Key: "k", Holder: "h"}, Ticket: r.ticket()}}
	for deadline := time.Now().Add(time.Minute); len(r.step("k", s).Served) == 0; {
		s.Ops = nil
		if time.Now().After(deadline) {
			t.Fatal("the permit is reserved for ever")
		}
	}
	r.books("k", 0, 1)
	equal(t, "expirations", r.info("k").Counters.Expirations, 0)
}

// The permits that are reserved for a server that is gone are not reserved once more beside themselves.
func TestAReservationThatHasRunOutTakesNoSecondPermit(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	r.acquire("k", "a", time.Minute)
	r.acquire("k", "b", time.Minute)
	r.beside().waits("k", 100, 1)
	s := line(waiter("ours", 2, 200))
	s.Ops = []Op{{Request: semaphore.Release{Key: "k", Holder: "a"}, Ticket: r.ticket()}}
	r.step("k", s)
	s.Ops = nil
	for deadline := time.Now().Add(time.Minute); r.do("ZCARD", "sem:k:holders") != int64(1); r.step("k", s) {
		if time.Now().After(deadline) {
			t.Fatal("the permit is reserved for ever")
		}
	}
	s.Ops = []Op{{Request: semaphore.Release{Key: "k", Holder: "b"}, Ticket: r.ticket()}}

	o := r.step("k", s)

	equal(t, "served", fmt.Sprint(served(o)), "[ours]")
	r.books("k", 0, 2)
}

func TestAServerWhoseLineIsEmptyIsNotWaitedFor(t *testing.T) {
	r := newRig(t)
	r.create("k", 2)
	r.acquire("k", "h", time.Minute)
	r.acquire("k", "i", time.Minute)
	other := r.beside()
	other.step("k", line(waiter("theirs", 1, 100)))
	other.step("k", &Step{Timeouts: 1, Waited: time.Second})
	r.ask(semaphore.Release{Key: "k", Holder: "h"})

	g := r.acquire("k", "x", time.Minute)

	equal(t, "replayed", g.Replayed, false)
	c := r.info("k").Counters
	equal(t, "waits that ended", c.WaitTimeouts, 1)
	equal(t, "time in line", c.WaitTotal, time.Second)
}
