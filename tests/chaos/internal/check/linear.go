package check

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// Verdict is what the search for an order of all requests came to.
type Verdict struct {
	Key string
	// Linear is that there is such an order; Undecided, that the time was up before one was found.
	Linear, Undecided bool
	Steps             int
	Took              time.Duration
	What              string // for people: where it fails
	From, To          time.Duration
}

// Linearizable searches the history of each semaphore for an order in which one that does one thing at
// a time gives these answers. Each search may take as long as limit.
func Linearizable(l history.Log, s Setup, limit time.Duration) []Verdict {
	var all []Verdict
	for _, key := range l.Keys() {
		all = append(all, newBook(l, s, key).search(limit))
	}
	return all
}

func (b *book) search(limit time.Duration) Verdict {
	m, operations := b.machine()
	began := time.Now()
	seed := maphash.MakeSeed()
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, _ any) []any {
			var all []any
			for _, next := range m.next(s.(state), in.(step)) {
				all = append(all, next)
			}
			return all
		},
		Equal: func(a, b any) bool { return equal(a.(state), b.(state)) },
		Hash:  func(s any) uint64 { return hash(seed, s.(state)) },
	}
	result, partial := porcupine.CheckOperationsVerbose(model.ToModel(), operations, limit)
	v := Verdict{
		Key: b.key, Steps: len(operations), Took: time.Since(began),
		Linear: result == porcupine.Ok, Undecided: result == porcupine.Unknown,
	}
	if result == porcupine.Illegal {
		v.explain(operations, partial)
	}
	return v
}

// machine is the model for this history, and the history as the model sees it.
func (b *book) machine() (*machine, []porcupine.Operation) {
	m := &machine{capacity: b.capacity, largest: b.largest}
	ranks := map[int64]int{}
	for i, g := range b.grants {
		ranks[g.token] = i
		m.facts = append(m.facts, fact{holder: g.holder, permits: g.permits, slots: g.slots, endedBy: g.doubtfulEnd(b)})
	}
	var operations []porcupine.Operation
	add := func(o history.Op, does step) {
		does.call, does.ret = o.Call, o.Return
		if does.does == shows || does.does == ends {
			m.facts[does.rank].lives++
		}
		operations = append(operations, porcupine.Operation{
			ClientId: o.Client, Input: does, Output: o.String(), Call: int64(does.call), Return: int64(does.ret),
		})
	}
	for _, g := range b.grants {
		if !g.known {
			add(g.told, step{does: nonsense})
			continue
		}
		got := g.origin
		got.Return = max(got.Return, g.told.Return)
		lease := g.origin.Lease
		if g.origin.Result.Outcome == history.Done {
			got, lease = g.origin, g.origin.Result.Grant.Lease
		}
		add(got, step{does: grants, rank: ranks[g.token], lease: lease, fresh: g.origin.Fresh})
	}
	for _, o := range b.ops {
		if does := b.step(o, ranks); does.does != "" {
			add(o, does)
		}
	}
	return m, operations
}

// doubtfulEnd is when a request that was not answered may first have ended the grant.
func (g *grant) doubtfulEnd(b *book) time.Duration {
	for _, o := range b.ops {
		if o.Holder == g.holder && o.Result.Outcome == history.Unknown && mayEnd(o, g) {
			return o.Call
		}
	}
	return never
}

// step is what an answer means to the model; nothing, if it is no answer or does not concern it.
func (b *book) step(o history.Op, ranks map[int64]int) step {
	r := o.Result
	switch {
	case r.Outcome == history.Null && o.Kind == history.Acquire:
		return step{does: refuses, permits: o.Permits, hidden: b.mayHide(o.Call, o.Return)}
	case r.Outcome != history.Done:
		return step{}
	case o.Kind == history.Count:
		return step{does: counts, inUse: r.Books.InUse, hidden: b.mayHide(o.Call, o.Return)}
	}
	g := b.named(o)
	if g == nil {
		return b.unnamed(o)
	}
	of := step{rank: ranks[g.token]}
	switch {
	case o.Kind == history.Acquire && !r.Grant.Replayed && o.Call == g.origin.Call && o.Client == g.origin.Client:
		return step{} // the grant itself
	case o.Kind == history.Acquire && !r.Grant.Replayed:
		of.does = nonsense
	case o.Kind == history.Acquire:
		of.does, of.lease = shows, r.Grant.Lease
	case r.Number == 0:
		of.does = denies
	case o.Kind == history.Release:
		of.does = ends
	case o.Kind == history.Renew:
		of.does, of.lease = shows, time.Duration(r.Number)*time.Millisecond
	case o.Kind == history.Check:
		of.does = shows
	}
	return of
}

// unnamed is what an answer means about a grant that no reply has told of.
func (b *book) unnamed(o history.Op) step {
	switch o.Kind {
	case history.Renew, history.Release, history.Check:
		if o.Result.Number != 0 && len(b.byHolder[o.Holder]) == 0 && !b.mayHold(o.Holder, o.Call, o.Return) {
			return step{does: nonsense}
		}
	}
	return step{}
}

// explain says where the longest order that was found comes to its end.
func (v *Verdict) explain(operations []porcupine.Operation, partial porcupine.LinearizationInfo) {
	var longest []porcupine.Operation
	for _, order := range partial.PartialLinearizationsOperations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	done := map[any]bool{}
	for _, o := range longest {
		done[o.Output] = true
	}
	var lines []string
	for _, o := range longest[max(0, len(longest)-8):] {
		lines = append(lines, fmt.Sprint("    then   ", o.Output))
	}
	// The request that stands in the way is the first to return of those that are not in the order.
	first := time.Duration(never)
	for _, o := range operations {
		if !done[o.Output] {
			first = min(first, time.Duration(o.Return))
		}
	}
	for _, o := range operations {
		if !done[o.Output] && time.Duration(o.Call) <= first {
			lines = append(lines, fmt.Sprint("    not    ", o.Input.(step).does, " ", o.Output))
		}
	}
	v.From, v.To = first-5*time.Second, first+time.Second
	v.What = fmt.Sprintf("%d of %d requests fit into an order, of which these are the last; one of the next does not\n%s",
		len(longest), len(operations), strings.Join(lines, "\n"))
}
