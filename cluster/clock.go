package cluster

import (
	"time"

	"github.com/semserver/semserver/fsm"
)

// Clock is where a node reads time. Only durations are taken from Monotonic; Wall is used for
// nothing but the size of tokens, so that a stepped wall clock ends no lease early or late.
type Clock struct {
	// Monotonic is the time since some fixed instant. It never steps and never goes back.
	Monotonic func() time.Duration
	// Wall is the wall clock. It may jump.
	Wall func() time.Time
}

// SystemClock is the clock of this machine.
func SystemClock() Clock {
	start := time.Now()
	return Clock{
		Monotonic: func() time.Duration { return time.Since(start) },
		Wall:      time.Now,
	}
}

// reading is what the cluster's clock said, and when, on this node's monotonic clock, it was seen to
// say so. A stamp is always seen after it was made, so a reading carried forward never runs ahead of
// the leader that made it.
type reading struct {
	clock fsm.Time
	seen  time.Duration
}

// at carries the reading forward to a later moment of the monotonic clock.
func (r reading) at(now time.Duration) fsm.Time {
	return r.clock + fsm.Time((now-r.seen)/time.Microsecond)
}

// leadership is one term in which this node leads: it starts when the node applies its own Open.
//
// The base is the state machine's clock before that Open, carried forward by the time that this node
// has seen pass since it applied the last entry before it. Neither a running maximum over earlier
// readings nor a base taken before the backlog is applied will do: both can run ahead of what a
// former leader promised, and end leases early.
type leadership struct {
	term uint64
	base reading
}
