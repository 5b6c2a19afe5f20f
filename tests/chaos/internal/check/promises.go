package check

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

const (
	never = time.Duration(math.MaxInt64)
	// rounding is what is lost where the wire has whole milliseconds.
	rounding = 2 * time.Millisecond
	// answerIn is how long after WAIT, or after --hold, an answer may come.
	answerIn = time.Second
	// perChange is what a change of leader may add to a lease, beside the time without a leader.
	perChange = time.Second
)

// Setup is what is known of the cluster that made a history.
type Setup struct {
	Capacity map[string]int64 // by semaphore
	Hold     time.Duration    // --hold
	Grace    time.Duration    // --waiter-grace
	// Slack is what a busy machine may add to an answer or to the end of a lease. It hides no fault:
	// what does not come in time usually does not come at all.
	Slack time.Duration
}

// Violation is a promise that was not kept.
type Violation struct {
	Promise string
	Key     string
	What    string
	From    time.Duration // where to look in the history
	To      time.Duration
}

// String names it in a line.
func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Promise, v.Key, v.What) }

// Promises lists what the history breaks, semaphore by semaphore.
func Promises(l history.Log, s Setup) []Violation {
	checks := []func(*book) []Violation{
		capacityIsKept, tokensGrow, nothingIsLost, nothingIsRevived, leasesAreFull, leasesEnd, lineIsKept, everythingIsAnswered, booksAreSound,
	}
	var found []Violation
	for _, key := range l.Keys() {
		b := newBook(l, s, key)
		for _, check := range checks {
			found = append(found, check(b)...)
		}
	}
	return found
}

// violation is one that the operations show.
func (b *book) violation(promise string, what string, ops ...history.Op) Violation {
	v := Violation{Promise: promise, Key: b.key, From: never}
	var lines []string
	for _, o := range ops {
		v.From, v.To = min(v.From, o.Call), max(v.To, o.Return)
		lines = append(lines, "\n    "+o.String())
	}
	v.What = what + strings.Join(lines, "")
	return v
}

// early is the soonest that a server's clock may show a length of time to have passed.
func early(d time.Duration) time.Duration {
	if d == never {
		return never
	}
	return d - d/100 - rounding
}

// late is the latest.
func late(d time.Duration) time.Duration { return d + d/100 + rounding }

// sum is a + b, where never stays never.
func sum(a, b time.Duration) time.Duration {
	if a == never || b == never {
		return never
	}
	return a + b
}
