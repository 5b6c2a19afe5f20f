package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// grant is one that some reply told of.
type grant struct {
	token   int64
	holder  string
	permits int64
	slots   []int64
	// origin is the request that got it. Where no answer says which that was, it is the first of its
	// holder that may have been it.
	origin  history.Op
	known   bool       // there is a request that may have got it
	told    history.Op // whose reply came first
	from    time.Duration
	about   []history.Op // those that name it, told and origin among them, in the order of their calls
	endedBy time.Duration
}

// book is what a history says of one semaphore.
type book struct {
	key      string
	capacity int64
	setup    Setup
	log      history.Log
	ops      []history.Op // on this semaphore
	grants   []*grant     // by token
	byToken  map[int64]*grant
	byHolder map[string][]*grant
	hidden   []hidden
	largest  int64 // permits that a request asked for
}

func newBook(l history.Log, s Setup, key string) *book {
	b := &book{
		key: key, capacity: s.Capacity[key], setup: s, log: l, ops: l.Of(key),
		byToken: map[int64]*grant{}, byHolder: map[string][]*grant{}, hidden: hiddenIn(l, s, key),
	}
	for _, o := range b.ops {
		b.largest = max(b.largest, o.Permits)
		if o.Kind == history.Acquire && o.Result.Outcome == history.Done {
			b.tell(o)
		}
	}
	slices.SortFunc(b.grants, func(a, b *grant) int { return cmp.Compare(a.token, b.token) })
	var from time.Duration
	for _, g := range b.grants {
		b.findOrigin(g)
		// A smaller token was granted before.
		from = max(from, g.origin.Call)
		g.from = from
		b.byHolder[g.holder] = append(b.byHolder[g.holder], g)
	}
	for _, o := range b.ops {
		if g := b.named(o); g != nil {
			g.about = append(g.about, o)
		}
	}
	for _, g := range b.grants {
		g.endedBy = b.firstEnd(g)
	}
	return b
}

// tell notes a reply that tells of a grant.
func (b *book) tell(o history.Op) {
	told := o.Result.Grant
	g := b.byToken[told.Token]
	if g == nil {
		g = &grant{token: told.Token, holder: told.Holder, permits: o.Permits, slots: told.Slots, told: o}
		b.byToken[told.Token] = g
		b.grants = append(b.grants, g)
	}
	if o.Return < g.told.Return {
		g.told = o
	}
	if !told.Replayed && !g.known {
		g.origin, g.known = o, true
	}
}

// findOrigin names the request that got a grant of which only repeats were told.
func (b *book) findOrigin(g *grant) {
	if g.known {
		return
	}
	g.origin = g.told
	for _, o := range b.ops {
		if o.Kind == history.Acquire && o.Holder == g.holder && o.Result.Outcome == history.Unknown && o.Call < g.told.Return {
			g.origin, g.known = o, true
			return
		}
	}
}

// named is the grant that an answer is about, or nil.
func (b *book) named(o history.Op) *grant {
	if o.Result.Outcome != history.Done {
		return nil
	}
	switch o.Kind {
	case history.Acquire:
		return b.byToken[o.Result.Grant.Token]
	case history.Renew, history.Release, history.Check:
		return b.meant(o)
	}
	return nil
}

// meant is the grant that a request names by its token, or by a holder who has had no other.
func (b *book) meant(o history.Op) *grant {
	if o.Token != 0 {
		return b.byToken[o.Token]
	}
	if of := b.byHolder[o.Holder]; len(of) == 1 {
		return of[0]
	}
	return nil
}

// firstEnd is the call of the first request that may have ended the grant before its lease did.
func (b *book) firstEnd(g *grant) time.Duration {
	for _, o := range b.ops {
		if o.Holder == g.holder && mayEnd(o, g) {
			return o.Call
		}
	}
	return never
}

func mayEnd(o history.Op, g *grant) bool {
	r := o.Result
	switch {
	case r.Outcome != history.Done && r.Outcome != history.Unknown:
		return false
	case o.Kind == history.Release:
		return (o.Token == 0 || o.Token == g.token) && (r.Outcome == history.Unknown || r.Number == 1)
	case o.Kind == history.Acquire && o.Fresh:
		return r.Outcome == history.Unknown || r.Grant.Token > g.token
	}
	return false
}

// live is whether an answer about a grant says that it is live, or was until this very request.
func live(o history.Op) bool {
	return o.Kind == history.Acquire || o.Result.Number != 0
}

// assures is the moment before which the lease cannot have ended, as far as this answer says.
func (g *grant) assures(o history.Op) time.Duration {
	switch o.Kind {
	case history.Acquire:
		assured := sum(o.Call, early(o.Result.Grant.Lease))
		if g.known && o.Call == g.origin.Call && o.Holder == g.origin.Holder {
			assured = max(assured, sum(g.from, early(o.Result.Grant.Lease)))
		}
		return assured
	case history.Renew:
		if o.Result.Number > 0 {
			return o.Call + early(time.Duration(o.Result.Number)*time.Millisecond)
		}
	}
	return 0
}

// assured is the moment before which the lease cannot have ended, as far as answers by then say.
func (g *grant) assured(by time.Duration) time.Duration {
	var end time.Duration
	for _, o := range g.about {
		if o.Return <= by {
			end = max(end, g.assures(o))
		}
	}
	return end
}

// certain is the span in which the grant is certainly live; it is empty if begin >= end.
func (g *grant) certain() (begin, end time.Duration) {
	return g.told.Return, min(g.assured(never), g.endedBy)
}
