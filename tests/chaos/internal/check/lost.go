package check

import (
	"fmt"
	"slices"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// nothingIsLost: while a grant is certainly live, every answer says so.
func nothingIsLost(b *book) []Violation {
	var found []Violation
	for _, o := range b.ops {
		for _, g := range b.byHolder[o.Holder] {
			begin, end := g.certain()
			if o.Call < begin || o.Return >= end {
				continue
			}
			if why := g.denied(o); why != "" {
				found = append(found, b.violation("acknowledged grants", why, g.told, o))
			}
		}
	}
	return found
}

// denied says in how far an answer denies the grant, or "".
func (g *grant) denied(o history.Op) string {
	r := o.Result
	switch {
	case r.Outcome == history.Null && !o.Fresh:
		return "a holder who asks again is told that there is no permit"
	case r.Outcome != history.Done:
		return ""
	case o.Kind == history.Acquire && !o.Fresh:
		return g.differs(o)
	case o.Kind == history.Renew || o.Kind == history.Release || o.Kind == history.Check:
		if (o.Token == 0 || o.Token == g.token) && r.Number == 0 {
			return "a live grant is said to be over"
		}
	}
	return ""
}

// differs says in how far a repeat's reply differs from the grant.
func (g *grant) differs(o history.Op) string {
	told := o.Result.Grant
	switch {
	case told.Token != g.token:
		return "a holder who asks again gets another grant"
	case !told.Replayed:
		return "a holder who asks again is told that it is new"
	case !slices.Equal(told.Slots, g.slots):
		return fmt.Sprintf("a grant in %v moved to %v", g.slots, told.Slots)
	case told.Lease+rounding < g.assured(o.Call)-o.Return:
		return fmt.Sprintf("a lease has %v left, less than was promised", told.Lease)
	case told.Lease > late(max(g.origin.Lease, g.told.Lease)):
		return fmt.Sprintf("a lease has %v left, more than was asked for", told.Lease)
	}
	return ""
}

// nothingIsRevived: what an answer has called over stays over, and is released at most once.
func nothingIsRevived(b *book) []Violation {
	var found []Violation
	for _, g := range b.grants {
		over := never // the first answer that says so
		var overBy, released history.Op
		for _, o := range g.about {
			ends := o.Kind == history.Release && o.Result.Number == 1
			if ends && released.Kind != "" {
				found = append(found, b.violation("releases", "a grant is released twice", released, o))
			}
			if ends {
				released = o
			}
			if (ends || !live(o) && o.Call >= g.told.Return) && o.Return < over {
				over, overBy = o.Return, o
			}
		}
		for _, o := range g.about {
			if live(o) && o.Call > over {
				found = append(found, b.violation("releases", "a grant that was over is live", g.told, overBy, o))
			}
		}
	}
	return append(found, b.grantsAfterNull()...)
}

// grantsAfterNull: who was told that there is no permit holds none.
func (b *book) grantsAfterNull() []Violation {
	last := map[string]history.Op{} // what a holder was told last
	var found []Violation
	for _, o := range b.ops {
		before, asked := last[o.Holder]
		if o.Kind == history.Release && o.Token == 0 && o.Result.Outcome == history.Done && o.Result.Number == 1 && asked &&
			before.Result.Outcome != history.Done && !b.mayHold(o.Holder, o.Call, o.Return) {
			found = append(found, b.violation("answers", "who was given nothing holds a permit", before, o))
		}
		if o.Kind == history.Acquire {
			last[o.Holder] = o
		}
	}
	return found
}
