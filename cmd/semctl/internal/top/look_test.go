package top

import (
	"testing"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// counted is a semaphore with these counters.
func counted(name string, immediate, waited, timeouts, waitMillis, expirations int64) Semaphore {
	return seen(remote.Fields{
		{Name: "name", Value: name}, {Name: "grants_immediate", Value: immediate}, {Name: "grants_waited", Value: waited},
		{Name: "wait_timeouts", Value: timeouts}, {Name: "wait_ms_total", Value: waitMillis}, {Name: "expirations", Value: expirations},
	})
}

func TestWhatHappenedIsTheDifferenceOfTwoLooks(t *testing.T) {
	before := Look{At: time.Unix(100, 0), Semaphores: []Semaphore{
		counted("a", 10, 5, 1, 600, 2), counted("again", 10, 5, 1, 600, 2),
	}}
	after := Look{At: time.Unix(102, 0), Semaphores: []Semaphore{
		counted("a", 12, 8, 2, 1000, 3), counted("again", 1, 0, 0, 0, 0), counted("new", 7, 0, 0, 0, 0),
	}}

	after.compare(before)

	a, again, fresh := after.Semaphores[0].Since, after.Semaphores[1].Since, after.Semaphores[2].Since
	// 2 + 3 grants in 2 s; 3 + 1 waits ended, of 400 ms together.
	if want := (Since{Known: true, Grants: 2.5, MeanWait: 100 * time.Millisecond, Expirations: 1}); a != want {
		t.Errorf("got %+v, want %+v", a, want)
	}
	if again.Known || fresh.Known {
		t.Errorf("a semaphore made anew and a new one: got %+v and %+v, want nothing known", again, fresh)
	}
}

func TestFirstLookKnowsNothingOfBefore(t *testing.T) {
	l := Look{At: time.Unix(100, 0), Semaphores: []Semaphore{counted("a", 1, 1, 1, 1, 1)}}

	l.compare(Look{})

	if l.Semaphores[0].Since.Known {
		t.Errorf("got %+v, want nothing known", l.Semaphores[0].Since)
	}
}

func TestUseIsTheShareOfTheCapacityThatIsTaken(t *testing.T) {
	for _, c := range []struct {
		s    Semaphore
		want float64
	}{
		{Semaphore{}, 0},
		{Semaphore{Capacity: 4, InUse: 1}, 0.25},
		{Semaphore{Capacity: 4, InUse: 2, Quarantined: 1}, 0.75},
		{Semaphore{Capacity: 2, InUse: 4}, 2},
		{Semaphore{Waiters: 1}, 1}, // a pause with a line
		{Semaphore{InUse: 1}, 1},
	} {
		if got := c.s.use(); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.s, got, c.want)
		}
	}
}

func TestCursorStaysInTheList(t *testing.T) {
	c := cursor{}
	c.move(nil, 1)
	if c.id != "" || c.index != 0 {
		t.Errorf("in an empty list: got %+v, want the first place", c)
	}
	abc := []string{"a", "b", "c"}
	for _, step := range []struct {
		ids      []string
		distance int
		want     string
	}{
		{abc, 0, "a"}, {abc, 1, "b"}, {abc, 9, "c"}, {abc, -9, "a"}, {abc, 1, "b"},
		{[]string{"a", "c"}, 0, "c"}, // b has gone
		{[]string{"x", "y", "c"}, 0, "c"},
		{[]string{"x"}, 0, "x"},
	} {
		c.move(step.ids, step.distance)
		if c.id != step.want {
			t.Errorf("%v by %d: got %q, want %q", step.ids, step.distance, c.id, step.want)
		}
	}
	c = cursor{index: 50}
	if first, last := c.window(100, 10); first > 50 || last <= 50 || last-first != 10 {
		t.Errorf("window: got %d … %d, want ten rows around 50", first, last)
	}
	if first, last := c.window(5, 10); first != 0 || last != 5 {
		t.Errorf("window of a short list: got %d … %d, want all", first, last)
	}
}
