package check

import (
	"fmt"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// tokensGrow: a token belongs to one grant, and a grant that was asked for after another was told has
// the larger one.
func tokensGrow(b *book) []Violation {
	found := b.tokensTwice()
	var soonest *grant // told first, among those of larger tokens
	for i := len(b.grants) - 1; i >= 0; i-- {
		g := b.grants[i]
		if soonest != nil && soonest.told.Return < g.origin.Call {
			found = append(found, b.violation("tokens", fmt.Sprintf("token %d was given out after %d", g.token, soonest.token), soonest.told, g.origin))
		}
		if soonest == nil || g.told.Return < soonest.told.Return {
			soonest = g
		}
	}
	return found
}

func (b *book) tokensTwice() []Violation {
	var found []Violation
	for _, g := range b.grants {
		if !g.known {
			found = append(found, b.violation("tokens", "a grant is told again that nobody can have been given", g.told))
		}
		for _, o := range g.about {
			if o.Kind != history.Acquire {
				continue
			}
			told := o.Result.Grant
			twice := !told.Replayed && (o.Call != g.origin.Call || o.Client != g.origin.Client)
			if told.Holder != g.holder || o.Holder != g.holder || twice {
				found = append(found, b.violation("tokens", fmt.Sprintf("token %d was given out twice", g.token), g.origin, o))
			}
		}
	}
	return found
}
