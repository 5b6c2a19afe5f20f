package check

import (
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// leasesAreFull: a grant or a renewal has the lease that was asked for.
func leasesAreFull(b *book) []Violation {
	var found []Violation
	for _, o := range b.ops {
		if got, asked := leaseOf(o); got > asked || got < asked-late(o.Return-o.Call) {
			found = append(found, b.violation("leases", fmt.Sprintf("a lease of %v where %v was asked for", got, asked), o))
		}
	}
	return found
}

// leaseOf is the lease that an answer gives, and the one that was asked for; nothing, where it gives
// none. After a wait the answer may have been long on its way through a broken network.
func leaseOf(o history.Op) (got, asked time.Duration) {
	switch {
	case o.Result.Outcome != history.Done:
	case o.Kind == history.Acquire && o.Wait == 0 && !o.Result.Grant.Replayed:
		return o.Result.Grant.Lease, o.Lease
	case o.Kind == history.Renew && o.Result.Number != 0 && o.Lease != 0:
		return time.Duration(o.Result.Number) * time.Millisecond, o.Lease
	}
	return 0, 0
}

// leasesEnd: a lease is over soon after its length has passed.
func leasesEnd(b *book) []Violation {
	var found []Violation
	for _, g := range b.grants {
		for _, o := range g.about {
			due := g.due(b, o.Call)
			if !live(o) || due == never || o.Call <= due {
				continue
			}
			if delay := b.mayDelay(g.told.Call, o.Call); o.Call > due+delay {
				found = append(found, b.violation("lease ends", fmt.Sprintf("a lease that was to end at %v, or %v later, is live", due, delay), g.told, o))
			}
		}
	}
	return found
}

// due is when the lease must have ended if nothing delayed it; never if that is not known.
func (g *grant) due(b *book, at time.Duration) time.Duration {
	end := g.told.Return + late(g.told.Result.Grant.Lease)
	for _, o := range b.ops {
		if o.Holder != g.holder || o.Kind != history.Renew || o.Call > at {
			continue
		}
		switch {
		case o.Result.Outcome == history.Unknown:
			return never
		case o.Result.Outcome == history.Done && o.Result.Number > 0:
			end = max(end, o.Return+late(time.Duration(o.Result.Number)*time.Millisecond))
		}
	}
	return end
}
