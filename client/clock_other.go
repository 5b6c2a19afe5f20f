//go:build !linux && !darwin

package client

import "time"

var started = time.Now()

// elapsed is the larger of what the monotonic clock and the wall clock say has passed. The first may
// stand still while the machine is suspended, the second may be set; a permit that ends too early
// does no harm.
func elapsed() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
