package check

import (
	"cmp"
	"fmt"
	"slices"
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
		return g.token < waiter.Result.Grant.Token
	case history.Null:
		return g.told.Return < waiter.Call+early(waiter.Wait)
	}
	return false // nobody knows how long it stood there
}

// waiter is a request that was seen in line, or takes the place of one that was.
type waiter struct {
	op   history.Op
	seen time.Duration
}

func (b *book) seenInLine() []waiter {
	requests := map[string][]history.Op{}
	left := map[string]bool{} // who did not stay to the end
	sightings := map[string][]history.Op{}
	for _, o := range b.ops {
		switch {
		case o.Kind == history.Acquire:
			requests[o.Holder] = append(requests[o.Holder], o)
		case o.Kind == history.Cancel:
			left[o.Holder] = true
		case o.Kind == history.Waiters && o.Result.Outcome == history.Done:
			for _, holder := range o.Result.Line {
				sightings[holder] = append(sightings[holder], o)
			}
		}
	}
	var all []waiter
	for holder, seen := range sightings {
		if of := requests[holder]; len(of) > 0 && !left[holder] && b.keptPlace(of, seen) {
			first := slices.MinFunc(seen, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
			all = append(all, waiter{of[len(of)-1], first.Return})
		}
	}
	return all
}

// keptPlace is whether a holder's requests certainly had one place in line: there is one, or each is
// repeated after its node was lost, soon enough.
func (b *book) keptPlace(requests, sightings []history.Op) bool {
	for i, next := range requests[1:] {
		lost := requests[i]
		soon := next.Call < lost.Call+early(lost.Wait) && next.Call < lost.Return+b.setup.Grace/2
		if lost.Result.Code != history.Broken || !soon || next.Wait == 0 {
			return false
		}
	}
	last := requests[len(requests)-1]
	if len(requests) == 1 {
		return last.Wait > 0 && !last.Result.Grant.Replayed
	}
	// A grant that nobody was told of may have ended meanwhile, unless its lease is too long for that.
	return slices.ContainsFunc(sightings, func(w history.Op) bool {
		return w.Call < last.Call && last.Return < w.Call+early(last.Lease)
	})
}
