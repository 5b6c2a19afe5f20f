//go:build !linux && !darwin

package client

import (
	"sync"
	"time"
)

// reading is the last one of the clock.
var reading struct {
	mu     sync.Mutex
	at     time.Time
	passed time.Duration
}

// elapsed adds up the larger of what the monotonic clock and the wall clock say has passed since the
// reading before. The first may stand still while the machine is suspended, the second may be set,
// forward or back; a permit that ends too early does no harm.
func elapsed() time.Duration {
	reading.mu.Lock()
	defer reading.mu.Unlock()
	now := time.Now()
	if !reading.at.IsZero() {
		reading.passed += max(now.Sub(reading.at), now.Round(0).Sub(reading.at.Round(0)))
	}
	reading.at = now
	return reading.passed
}
