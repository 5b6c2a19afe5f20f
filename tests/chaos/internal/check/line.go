package check

import (
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// lineIsKept: nobody who asks after another was seen in line is granted before it.
func lineIsKept(b *book) []Violation {
	var found []Violation
	first := b.firstRequests()
	for _, w := range b.seenInLine() {
		for _, g := range b.grants {
			// Only a newcomer can overtake: who has asked before may have a place in line from then.
			if o := g.origin; o.Holder != w.op.Holder && first[o.Holder] > w.seen && b.overtook(w.op, g) {
				found = append(found, b.violation("line", fmt.Sprintf("granted before %s, who was seen in line at %v", w.op.Holder, w.seen), w.op, o))
			}
		}
	}
	return found
}

// firstRequests are the moments at which holders asked first.
func (b *book) firstRequests() map[string]time.Duration {
	first := map[string]time.Duration{}
	for _, o := range b.ops {
		if _, asked := first[o.Holder]; o.Kind == history.Acquire && !asked {
			first[o.Holder] = o.Call
		}
	}
	return first
}

func (b *book) overtook(waiter history.Op, g *grant) bool {
	switch waiter.Result.Outcome {
	case history.Done:
		return !waiter.Result.Grant.Replayed && g.token < waiter.Result.Grant.Token
	case history.Null:
		return g.told.Return < waiter.Call+early(waiter.Wait)
	}
	return false // nobody knows how long it stood there
}

// waiter is a request that was seen in line.
type waiter struct {
	op   history.Op
	seen time.Duration
}

func (b *book) seenInLine() []waiter {
	requests := map[string][]history.Op{}
	left := map[string]bool{} // who did not stay to the end
	for _, o := range b.ops {
		switch o.Kind {
		case history.Acquire:
			requests[o.Holder] = append(requests[o.Holder], o)
		case history.Cancel:
			left[o.Holder] = true
		}
	}
	seen := map[string]time.Duration{}
	for _, o := range b.ops {
		if o.Kind != history.Waiters || o.Result.Outcome != history.Done {
			continue
		}
		for _, holder := range o.Result.Line {
			if at, known := seen[holder]; !known || o.Return < at {
				seen[holder] = o.Return
			}
		}
	}
	var all []waiter
	for holder, at := range seen {
		// Of one who asked several times nobody knows which request was seen.
		if of := requests[holder]; len(of) == 1 && of[0].Wait > 0 && !left[holder] {
			all = append(all, waiter{of[0], at})
		}
	}
	return all
}
