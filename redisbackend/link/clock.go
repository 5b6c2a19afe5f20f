package link

import (
	"sync"
	"time"
)

const (
	// clockDrift is how much faster or slower, at most, one clock runs than another: one part in this many.
	clockDrift = 1000
	// clockTolerance is by how much clocks may contradict each other before one has been stepped.
	clockTolerance = 100 * time.Millisecond
)

// Instant is a moment on the clock of a Redis.
type Instant struct {
	// Millis since 1970. The estimate is never ahead of the clock, and within an era never goes back.
	Millis int64
	// Era counts how often this clock was found to be another than the estimate, by 100 ms or more: it was
	// stepped, or a server with another clock has taken over. Millis of different eras cannot be compared. It
	// is 0 until the Redis has been asked, and Millis are those of our own clock.
	Era uint64
}

// clock estimates the clock of a server: our own monotonic clock plus an offset, which lies between two
// bounds. Every look at the server narrows them, time widens them.
type clock struct {
	mu        sync.Mutex
	start     time.Time
	low, high time.Duration // bounds of the offset: the server's time since 1970 less our time since start
	seen      time.Duration // our time when the bounds held
	era       uint64
	last      int64
}

func newClock() *clock { return &clock{start: time.Now()} }

// own is our monotonic time.
func (c *clock) own() time.Duration { return time.Since(c.start) }

// see takes in that the server's clock showed a time at some moment between two of ours.
func (c *clock) see(server, before, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := server-after, server-before
	widen := (after - c.seen) / clockDrift
	oldLow, oldHigh := c.low-widen, c.high+widen
	c.seen = after
	if c.era == 0 || low > oldHigh+clockTolerance || high < oldLow-clockTolerance {
		c.era++
		c.low, c.high, c.last = low, high, 0
		return
	}
	c.low, c.high = max(low, oldLow), min(high, oldHigh)
	if c.low > c.high { // within the tolerance: the newer look is right
		c.low, c.high = low, high
	}
}

// now is the estimate.
func (c *clock) now() Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.era == 0 {
		return Instant{Millis: time.Now().UnixMilli()}
	}
	own := c.own()
	c.last = max(c.last, (own + c.low - (own-c.seen)/clockDrift).Milliseconds())
	return Instant{c.last, c.era}
}
