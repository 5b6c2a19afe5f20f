package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// gambler draws random requests that have a fair chance to meet each other.
type gambler struct {
	*rapid.T
	out     Outcome    // of the latest entry played
	grants  []GiveBack // to be given back, perhaps
	places  []Leave    // to be left, perhaps
	repeats []Rejoin   // to be asked for again, perhaps
	waits   bool       // draw requests that wait
	stays   bool       // draw no IDLE, and no Reconcile: how much is overdue is its answer
}

func (g *gambler) n(what string, low, high int) int     { return rapid.IntRange(low, high).Draw(g.T, what) }
func (g *gambler) chance(what string, percent int) bool { return g.n(what, 1, 100) <= percent }
func (g *gambler) key() string                          { return fmt.Sprintf("k%d", g.n("key", 1, 3)) }
func (g *gambler) holder() string                       { return fmt.Sprintf("h%d", g.n("holder", 1, 5)) }

func (g *gambler) lease() time.Duration {
	return rapid.SampledFrom([]time.Duration{0, ms(10), ms(25), ms(60), ms(200), semaphore.Persist}).Draw(g.T, "lease")
}

func (g *gambler) settings() (s semaphore.Settings) {
	draw := func(what string, setting *semaphore.Setting, values ...time.Duration) {
		if g.chance(what, 25) {
			*setting = semaphore.Set(rapid.SampledFrom(values).Draw(g.T, what))
		}
	}
	draw("LEASE", &s.Lease, ms(20), ms(50), ms(100))
	draw("MAXLEASE", &s.MaxLease, ms(30), ms(80))
	draw("MAXHOLD", &s.MaxHold, ms(70), ms(150))
	draw("QUARANTINE", &s.Quarantine, ms(15), ms(40))
	if !g.stays {
		draw("IDLE", &s.Idle, ms(30), ms(300))
	}
	return s
}

func (g *gambler) acquire() semaphore.Acquire {
	q := semaphore.Acquire{
		Key: g.key(), Holder: g.holder(), Permits: int64(g.n("permits", 1, 3)), Lease: g.lease(),
		Label: fmt.Sprintf("client %d", g.n("label", 1, 9)),
		Made:  g.chance("made", 20), Fresh: g.chance("fresh", 15),
	}
	if g.waits && g.chance("waits", 70) {
		q.Wait = ms(int64(g.n("wait", 1, 150)))
	}
	if g.chance("creates", 30) {
		q.Create, q.Capacity = true, int64(g.n("capacity", 0, 4))
	}
	return q
}

func (g *gambler) request() semaphore.Request {
	token := int64(g.n("token", 0, 1)) * int64(g.n("which", 1, 40))
	switch d := g.n("request", 1, 100); {
	case d <= 36:
		return g.acquire()
	case d <= 40 && len(g.repeats) > 0:
		return rapid.SampledFrom(g.repeats).Draw(g.T, "repeat")
	case d <= 56:
		return semaphore.Release{Key: g.key(), Holder: g.holder(), Token: token}
	case d <= 66:
		return semaphore.Renew{Key: g.key(), Holder: g.holder(), Lease: g.lease(), Token: token}
	case d <= 70:
		return semaphore.Cancel{Key: g.key(), Holder: g.holder()}
	case d <= 74 && len(g.places) > 0:
		return rapid.SampledFrom(g.places).Draw(g.T, "place")
	case d <= 79 && len(g.grants) > 0:
		return rapid.SampledFrom(g.grants).Draw(g.T, "grant")
	case d <= 82:
		return semaphore.Check{Key: g.key(), Holder: g.holder(), Token: token}
	case d <= 90:
		return semaphore.Create{Key: g.key(), Capacity: int64(g.n("capacity", 0, 4)), Settings: g.settings(), MinToken: token, IfAbsent: g.chance("ifabsent", 30)}
	case d <= 97:
		return semaphore.Resize{Key: g.key(), Capacity: int64(g.n("capacity", 0, 5)), Settings: g.settings()}
	case d <= 98 && !g.stays:
		return semaphore.Reconcile{Key: g.key()}
	}
	return semaphore.Delete{Key: g.key(), Force: g.chance("force", 50)}
}

func (g *gambler) limits() semaphore.Limits {
	limits := smallLimits()
	if g.stays {
		limits.DefaultIdle = time.Hour
	}
	return limits
}

// note remembers tickets for later.
func (g *gambler) note(t semaphore.Ticket, q semaphore.Request, r semaphore.Reply) {
	a, ok := q.(semaphore.Acquire)
	if r, again := q.(Rejoin); again {
		a, ok = r.Acquire, true
	}
	if !ok {
		return
	}
	if grant, ok := r.Value.(*semaphore.Grant); ok {
		g.grants = append(g.grants, GiveBack{a.Key, grant.Holder, grant.Token, t})
	}
	if (r.Value == InLine{}) {
		g.places = append(g.places, Leave{a.Key, a.Holder, t})
		g.repeats = append(g.repeats, Rejoin{a, t}, Rejoin{Acquire: a})
	}
}

// reads are the requests whose answers show the whole state.
func reads() (all []semaphore.Request) {
	for _, key := range []string{"k1", "k2", "k3"} {
		all = append(all, semaphore.Inspect{Key: key},
			semaphore.Holders{Key: key, Count: 2}, semaphore.Holders{Key: key, Cursor: 5, Count: 100},
			semaphore.Waiters{Key: key, Count: 2}, semaphore.Waiters{Key: key, Cursor: 2, Count: 100})
	}
	return append(all, semaphore.Scan{Count: 2}, semaphore.Scan{Cursor: 2, Count: 100})
}

// smallLimits make the limits part of the game.
func smallLimits() semaphore.Limits {
	return semaphore.Limits{DefaultLease: ms(40), DefaultIdle: ms(200), MaxWaiters: 3, MaxWaitersAll: 5, MaxSemaphores: 2}
}

func sameReply(a, b semaphore.Reply) bool {
	if a.Err != nil || b.Err != nil {
		return a.Value == nil && b.Value == nil && errors.Is(a.Err, b.Err)
	}
	return reflect.DeepEqual(a.Value, b.Value)
}

func sameEvents(a, b []Event) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Ticket != b[i].Ticket || !sameReply(a[i].Reply, b[i].Reply) {
			return false
		}
	}
	return true
}

// TestStateAgreesWithTheModel plays random entries against both and compares every reply, every event
// and all that can be seen.
func TestStateAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := &gambler{T: rt, waits: true}
		s, m := New(), &model{limits: smallLimits()}
		number, stamp := uint64(1), int64(0)
		for range g.n("entries", 1, 60) {
			stamp += int64(g.n("pause", 0, 40)) * 1000
			m.wall = int64(g.n("wall", 0, 50))
			b := newBatch(testTerm)
			m.events = nil
			m.now = max(m.now, stamp)
			if g.chance("loss", 5) {
				lost := uint64(g.n("lost", 1, 2))
				b.Lost(lost, ms(30))
				m.lose(lost, ms(30))
			}
			m.advance(stamp)
			for _, sem := range m.sems {
				m.serve(sem)
			}
			var want []semaphore.Reply
			from := uint64(g.n("from", 1, 2))
			b.Section(from, number, m.limits)
			for range g.n("requests", 1, 4) {
				q, ticket := g.request(), semaphore.Ticket{Incarnation: from, Number: number}
				r := m.do(ticket, q)
				g.note(ticket, q, r)
				b.Add(AppendRequest(nil, q), 1)
				want = append(want, r)
				number++
				rt.Logf("%d ms, node %d: %+v -> %+v", stamp/1000, from, q, r)
			}
			compare(rt, s, b.Seal(Time(stamp), m.wall), want, m)
		}
	})
}

func compare(rt *rapid.T, s *State, entry []byte, want []semaphore.Reply, m *model) {
	out, err := s.Apply(entry, testTerm, everybody)
	if err != nil {
		rt.Fatalf("apply: %v", err)
	}
	if err := s.Check(); err != nil {
		rt.Fatalf("check: %v", err)
	}
	for i, r := range out.Sections[0].Replies {
		if !sameReply(r, want[i]) {
			rt.Fatalf("reply %d: got %+v, want %+v", i, r, want[i])
		}
	}
	wantSameElsewhere(rt, out)
	if !sameEvents(out.Events, m.events) {
		rt.Fatalf("got events %+v, want %+v", out.Events, m.events)
	}
	before := snapshotBytes(rt, s)
	for _, q := range reads() {
		got := readThrough(rt, s, q)
		wantSameElsewhere(rt, Outcome{Sections: []Section{{Replies: []semaphore.Reply{got}}}})
		if want := m.do(semaphore.Ticket{}, q); !sameReply(got, want) {
			rt.Fatalf("%T%+v: got %+v, want %+v", q, q, show(got), show(want))
		}
	}
	if !bytes.Equal(before, snapshotBytes(rt, s)) {
		rt.Fatalf("reading changed the state")
	}
}

func show(r semaphore.Reply) string {
	if r.Value == nil && r.Err == nil {
		return "nil"
	}
	if r.Err != nil {
		return r.Err.Error()
	}
	return fmt.Sprintf("%+v", reflect.Indirect(reflect.ValueOf(r.Value)))
}

func readThrough(rt *rapid.T, s *State, q semaphore.Request) semaphore.Reply {
	out, err := s.Apply(entryOf(0, q), testTerm, everybody)
	if err != nil {
		rt.Fatalf("apply: %v", err)
	}
	return out.Sections[0].Replies[0]
}

func snapshotBytes(rt *rapid.T, s *State) []byte {
	var b bytes.Buffer
	sn := s.Snapshot()
	defer sn.Release()
	if _, err := sn.WriteTo(&b); err != nil {
		rt.Fatalf("snapshot: %v", err)
	}
	return b.Bytes()
}
