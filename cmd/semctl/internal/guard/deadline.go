package guard

import (
	"errors"
	"time"

	"github.com/semserver/semserver/client"
)

// OnLost is what becomes of a command whose permit is lost.
type OnLost int

// What can be done about it.
const (
	Kill OnLost = iota // ask it to end, then kill it, before the lease is over
	Send               // ask it to end, and leave it at that
	Ignore
)

const (
	graceShare = 6
	maxGrace   = 10 * time.Second

	// leadShare of the lease is how long before the permit's end the command is killed: the kernel
	// needs a moment, and so do we.
	leadShare = 50
	minLead   = 30 * time.Millisecond
	maxLead   = 250 * time.Millisecond
)

// deadline says when the end of a permit has to be acted on.
type deadline struct {
	grace, lead time.Duration
	ends        time.Time // when the permit ends, as far as is known
	gone        bool      // the server has said that it is not held
}

// LongestGrace is how long a command may be given to end: at most half of the lease, and no longer than
// leaves an eighth of it to renew it in, from a third of the lease on.
func LongestGrace(lease time.Duration) time.Duration {
	left := lease - lease/3 - lease/8 - client.Margin(lease) - leadOf(lease)
	return max(0, min(lease/2, left)).Truncate(time.Millisecond)
}

// leadOf is how long before the end of the permit of such a lease the command is killed.
func leadOf(lease time.Duration) time.Duration { return min(max(lease/leadShare, minLead), maxLead) }

// newDeadline makes the deadline of a permit that lasts so long at first.
func newDeadline(lease, grace time.Duration) deadline {
	if grace == 0 {
		grace = min(lease/graceShare, maxGrace)
	}
	return deadline{grace: grace, lead: leadOf(lease)}
}

// step is what the state of a permit asks for.
type step int

const (
	goOn step = iota
	ask       // the command to end
	kill      // it
)

// look takes in the state of the permit at a moment: what is left of it, and how it was lost, if it was.
// It returns what is to be done, and how long nothing else is.
func (d *deadline) look(now time.Time, left time.Duration, lost error) (step, time.Duration) {
	switch {
	case lost == nil:
		d.ends = now.Add(left)
	case errors.Is(lost, client.ErrNotHeld):
		// Somebody else may hold it by now. The command is given its grace all the same, but not
		// longer than its lease would have gone.
		if limit := now.Add(d.grace + d.lead); !d.gone && limit.Before(d.ends) {
			d.ends = limit
		}
		d.gone = true
		left = d.ends.Sub(now)
	default:
		left = 0
	}
	switch {
	case left <= d.lead:
		return kill, 0
	case left <= d.lead+d.grace || d.gone:
		return ask, left - d.lead
	}
	return goOn, left - d.lead - d.grace
}
