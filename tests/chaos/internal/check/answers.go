package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// refusals are the codes with which a cluster may refuse what the clients ask.
func refusals() []string { return []string{"CLUSTERDOWN", "SUPERSEDED"} }

// doubts are those that leave the outcome open.
func doubts() []string {
	return []string{"UNCERTAIN", "SHUTDOWN", history.Broken, history.HungUp, history.Silent}
}

// everythingIsAnswered: in time, not too soon, and with a code that fits.
func everythingIsAnswered(b *book) []Violation {
	var found []Violation
	for _, o := range b.ops {
		if why := b.wrong(o); why != "" {
			found = append(found, b.violation("answers", why, o))
		}
	}
	return found
}

func (b *book) wrong(o history.Op) string {
	r := o.Result
	switch {
	case r.Outcome == history.Refused && !slices.Contains(refusals(), r.Code):
		return "refused for no reason"
	case r.Outcome == history.Unknown && !slices.Contains(doubts(), r.Code):
		return "an error that says nothing"
	case r.Code == history.HungUp:
		return ""
	case o.Return-o.Call > Patience(b.setup, o)+b.mute(o):
		return fmt.Sprintf("answered, or not, after %v", o.Return-o.Call)
	case r.Code == history.Silent && b.mute(o) == 0:
		return "no answer"
	case r.Outcome == history.Null && o.Return-o.Call < early(o.Wait) && !b.cancelled(o):
		return "null before WAIT has passed"
	}
	return ""
}

// Patience is how long a client may have to wait for an answer from a node that is there.
func Patience(s Setup, o history.Op) time.Duration {
	wait := o.Wait
	if wait == 0 {
		wait = s.Hold
	}
	return wait + answerIn + s.Slack
}

// mute is how long the node could not answer while the request was under way.
func (b *book) mute(o history.Op) time.Duration {
	var total time.Duration
	for _, f := range b.log.Faults {
		if slices.Contains(f.Mute, o.Node) && f.From <= o.Return && f.To >= o.Call {
			total += min(f.To, o.Return) - max(f.From, o.Call)
		}
	}
	return total
}

func (b *book) cancelled(o history.Op) bool {
	return slices.ContainsFunc(b.ops, func(c history.Op) bool {
		return c.Kind == history.Cancel && c.Holder == o.Holder && c.Call <= o.Return && c.Return >= o.Call
	})
}
