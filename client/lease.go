package client

import "time"

const (
	// MinLease is the shortest lease that can be asked for: what is left of it after the margin must
	// be time enough to renew it.
	MinLease = 200 * time.Millisecond

	renewShare = 3 // a lease is renewed when a third of it has passed
	tryShare   = 6 // one attempt may take a sixth of it, so that several fit into the rest
	pauseShare = 50
)

// Margin is how long before the end of a lease at the server the permit ends here: 1 % for clocks whose
// rates differ, and 50 ms for the time until somebody acts on it.
func Margin(lease time.Duration) time.Duration { return lease/100 + 50*time.Millisecond }

// lease is what is known of a grant's lease. Times are readings of the client's clock.
type lease struct {
	asked  time.Duration // before the request was sent that the server answered with length
	length time.Duration // 0: never ends
}

// forever says that the lease has no end.
func (l lease) forever() bool { return l.length == 0 }

// ends is when the permit ends: surely before the lease does at the server.
func (l lease) ends() time.Duration { return l.asked + l.length - Margin(l.length) }

// due is when the lease is to be renewed.
func (l lease) due() time.Duration { return l.asked + l.length/renewShare }

// try is how long one renewal may take.
func (l lease) try() time.Duration {
	return min(max(l.length/tryShare, 50*time.Millisecond), answerTimeout)
}

// pause is how long to wait after a renewal that failed.
func (l lease) pause() time.Duration {
	return min(max(l.length/pauseShare, 20*time.Millisecond), time.Second)
}

// glance is how often to look at the clock. Timers stand still while a machine is suspended; whoever
// looks twice in each margin notices an end that came meanwhile before the lease itself is over.
func (l lease) glance() time.Duration { return Margin(l.length) / 2 }
