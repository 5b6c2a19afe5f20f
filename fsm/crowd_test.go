package fsm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestCrowdFindsEveryHolderWhateverComesAndGoes compares a crowd with a map, while it grows until its
// index is of many tables, and while it shrinks until there is none.
func TestCrowdFindsEveryHolderWhateverComesAndGoes(t *testing.T) {
	const holders, steps = 10_000, 60_000
	random := rand.New(rand.NewPCG(3, 4))
	var c crowd[*grant]
	want := make(map[string]*grant)
	for token := range int64(steps) {
		id := fmt.Sprintf("holder-%d", random.IntN(holders))
		old := want[id]
		growing := token < steps/2
		switch g := (&grant{text: id, idSize: uint16(len(id)), token: token, end: Time(random.IntN(1000))}); {
		case old == nil && growing:
			want[id] = g
			c.add(g)
		case old == nil:
		case random.IntN(4) == 0: // a second one, until the first, which has ended, is taken out
			want[id] = g
			c.add(g)
			c.remove(old)
		case random.IntN(4) == 0:
			want[id] = old.copied(1)
			c.replace(old, want[id])
		case !growing || random.IntN(2) == 0:
			delete(want, id)
			c.remove(old)
		}
		if got := c.find(id); got != want[id] {
			t.Fatalf("step %d: got %v for %s, want %v", token, got, id, want[id])
		}
		if token%1000 == 0 {
			compareCrowd(t, &c, want, holders)
		}
		if token == steps/2 && len(c.byHolder.tables) < 8 {
			t.Errorf("got %d tables, want more", len(c.byHolder.tables))
		}
	}
	for _, g := range want {
		c.remove(g)
	}
	compareCrowd(t, &c, nil, holders)
	if c.byHolder != nil {
		t.Errorf("got an index of nobody")
	}
}

func compareCrowd(t *testing.T, c *crowd[*grant], want map[string]*grant, holders int) {
	t.Helper()
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	if c.len() != len(want) {
		t.Fatalf("got %d members, want %d", c.len(), len(want))
	}
	for i := range holders {
		id := fmt.Sprintf("holder-%d", i)
		if got := c.find(id); got != want[id] {
			t.Fatalf("got %v for %s, want %v", got, id, want[id])
		}
	}
}
