package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// prompt is how quickly an answer comes from a cluster that has a leader and time for it; only such
// answers prove that there was one.
const prompt = 250 * time.Millisecond

// mayDelay is by how much the ends of leases may be put off that ran between these moments: by the
// time without a leader, and by a second for each change of leader.
func (b *book) mayDelay(from, to time.Duration) time.Duration {
	changes := time.Duration(1) // one may have gone unseen
	for _, r := range b.log.Reigns {
		if r.Seen >= from && r.Seen <= to {
			changes++
		}
	}
	return b.setup.Slack + changes*perChange + dark(b.log.Ops, from, to)
}

// dark is how much of [from, to] passed without proof that the cluster decided.
func dark(ops []history.Op, from, to time.Duration) time.Duration {
	var proofs []history.Op
	for _, o := range ops {
		decided := o.Result.Outcome == history.Done || o.Result.Outcome == history.Null
		if decided && o.Return-o.Call < prompt && o.Return >= from && o.Call <= to {
			proofs = append(proofs, o)
		}
	}
	slices.SortFunc(proofs, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
	var total time.Duration
	last := from
	for _, o := range proofs {
		total += gap(last, o.Return)
		last = max(last, o.Call)
	}
	return total + gap(last, to)
}

func gap(from, to time.Duration) time.Duration {
	if to-from < prompt {
		return 0
	}
	return to - from
}
