package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed is a clock that nobody sets and that goes on while the machine is asleep, as this one does
// on this system.
func elapsed() time.Duration {
	var now unix.Timespec
	// It fails only for a clock that the system does not have.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano())
}
