package check

import (
	"slices"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// hidden is a request whose outcome nobody was told: it may have held permits from its call until
// every trace of it must be gone.
type hidden struct {
	holder  string
	permits int64
	from    time.Duration
	to      time.Duration
}

func hiddenIn(l history.Log, s Setup, key string) []hidden {
	var all []hidden
	for _, o := range l.Ops {
		if o.Key == key && o.Kind == history.Acquire && o.Result.Outcome == history.Unknown {
			all = append(all, hidden{o.Holder, o.Permits, o.Call, settled(l.Faults, s, o)})
		}
	}
	return all
}

// settled is when nothing can be left of a request that was not answered: it may reach the cluster as
// late as the faults keep it from it, wait there, be kept for the grace, and hold its lease.
func settled(faults []history.Fault, s Setup, o history.Op) time.Duration {
	lease := late(o.Lease) + s.Slack
	if o.Result.Code == history.HungUp && !slices.ContainsFunc(faults, func(f history.Fault) bool { return f.From <= o.Return+s.Slack && f.To >= o.Call }) {
		return o.Return + lease
	}
	wait := o.Wait + s.Hold + s.Grace + answerIn + s.Slack
	reached := o.Return
	for _, f := range faults { // in the order of their beginning
		if f.From <= reached+wait && f.To > reached {
			reached = f.To
		}
	}
	return reached + wait + lease
}

// mayHide are the permits that such requests may have held at some moment of [from, to].
func (b *book) mayHide(from, to time.Duration) int64 {
	var permits int64
	for _, h := range b.hidden {
		if h.from <= to && h.to >= from {
			permits += h.permits
		}
	}
	return permits
}

// mayHold is whether such a request may have made this holder hold at some moment of [from, to].
func (b *book) mayHold(holder string, from, to time.Duration) bool {
	return slices.ContainsFunc(b.hidden, func(h hidden) bool {
		return h.holder == holder && h.from <= to && h.to >= from
	})
}
