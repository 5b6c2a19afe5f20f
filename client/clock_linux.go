package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed is a clock that nobody sets and that goes on while the machine is suspended. Go's own
// monotonic clock stands still then.
func elapsed() time.Duration {
	var now unix.Timespec
	// It fails only for a clock that the kernel does not have; this one is older than any Linux that
	// Go runs on.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return time.Duration(now.Nano())
}
