package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// capacityIsKept: at no moment are more permits certainly live than there are, and none share a slot.
func capacityIsKept(b *book) []Violation {
	type edge struct {
		at time.Duration
		g  *grant
	}
	var begins []edge
	for _, g := range b.grants {
		if begin, end := g.certain(); begin < end {
			begins = append(begins, edge{begin, g})
		}
	}
	slices.SortFunc(begins, func(a, b edge) int { return cmp.Compare(a.at, b.at) })

	var found []Violation
	var held []*grant
	for _, e := range begins {
		held = slices.DeleteFunc(held, func(g *grant) bool { _, end := g.certain(); return end <= e.at })
		for _, g := range held {
			if shared(g.slots, e.g.slots) {
				found = append(found, b.violation("slots", fmt.Sprintf("two live grants share a place of %v and %v", g.slots, e.g.slots), g.told, e.g.told))
			}
		}
		held = append(held, e.g)
		if permits := permitsOf(held); permits > b.capacity {
			found = append(found, b.violation("capacity", fmt.Sprintf("%d permits are live at %v, of %d", permits, e.at, b.capacity), toldOf(held)...))
		}
	}
	return found
}

func shared(a, b []int64) bool {
	return slices.ContainsFunc(a, func(slot int64) bool { return slices.Contains(b, slot) })
}

func permitsOf(grants []*grant) int64 {
	var permits int64
	for _, g := range grants {
		permits += g.permits
	}
	return permits
}

func toldOf(grants []*grant) []history.Op {
	var ops []history.Op
	for _, g := range grants {
		ops = append(ops, g.told)
	}
	return ops
}

// booksAreSound: what SEM.INFO says adds up, and slots are places of the semaphore, one a permit.
func booksAreSound(b *book) []Violation {
	var found []Violation
	for _, o := range b.ops {
		if o.Kind != history.Count || o.Result.Outcome != history.Done {
			continue
		}
		books := o.Result.Books
		if books.Capacity != b.capacity || books.InUse > b.capacity || books.Available != b.capacity-books.InUse {
			found = append(found, b.violation("capacity", fmt.Sprintf("books that do not add up to %d", b.capacity), o))
		}
	}
	for _, g := range b.grants {
		outside := slices.ContainsFunc(g.slots, func(slot int64) bool { return slot < 0 || slot >= b.capacity })
		if outside || int64(len(g.slots)) != g.permits {
			found = append(found, b.violation("slots", fmt.Sprintf("%d permits of %d in places %v", g.permits, b.capacity, g.slots), g.told))
		}
	}
	return found
}
