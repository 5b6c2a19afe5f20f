package semaphore

import "time"

// Bounds that the protocol states; they are not configurable.
const (
	// MaxName is the longest key, holder id or label, in bytes.
	MaxName = 1024
	// MaxCapacity is the largest capacity and the largest number of permits in one request. It keeps
	// every count exact for clients that read numbers as doubles.
	MaxCapacity = 1<<53 - 1
	// MaxMinToken is the highest floor for tokens that can be set by hand. Tokens stay below 2^53;
	// half of the range is left for the grants that follow.
	MaxMinToken = 1 << 52
	// MaxDuration is the longest lease, wait or setting that can be named at all.
	MaxDuration = 100 * 365 * 24 * time.Hour
	// MaxCount is the largest page of a listing; a larger COUNT is cut to it.
	MaxCount = 1000
	// MaxRun is the most requests in one call of Backend.Do.
	MaxRun = 256
	// DefaultCount is the page of a listing when no COUNT is given.
	DefaultCount = 100
)

// Limits are the defaults and limits of one node. They are resolved where a request enters and
// travel with it, so that the engine's state does not depend on any node's configuration.
type Limits struct {
	DefaultLease  time.Duration // lease where neither the request nor the semaphore names one
	DefaultIdle   time.Duration // IDLE of a semaphore that an Acquire creates
	MaxWaiters    int           // waiters in one line
	MaxWaitersAll int           // waiters in all lines together
	MaxSemaphores int           // semaphores in all
}

// DefaultLimits are the limits of a server without flags.
func DefaultLimits() Limits {
	return Limits{
		DefaultLease:  30 * time.Second,
		DefaultIdle:   24 * time.Hour,
		MaxWaiters:    10_000,
		MaxWaitersAll: 1_000_000,
		MaxSemaphores: 1_000_000,
	}
}
