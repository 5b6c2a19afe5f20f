package peer

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// complainEvery is how often the same is said of the same address.
	complainEvery = 10 * time.Second
	// maxComplaints is how many are remembered: strangers cannot make the log or the memory grow by
	// coming from many addresses.
	maxComplaints = 1024
)

// complaints are what the log is told about peers: not a line for each attempt.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[complaint]time.Time
}

type complaint struct{ address, what string }

func newComplaints(log *slog.Logger) *complaints {
	return &complaints{log: log, last: make(map[complaint]time.Time)}
}

// say logs what is wrong with an address and why, unless it has just done so.
func (c *complaints) say(what, address string, why error) {
	if c.fresh(complaint{address, what}, time.Now()) {
		c.log.Warn(what, "address", address, "error", why)
	}
}

func (c *complaints) fresh(about complaint, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, said := c.last[about]; said && now.Sub(last) < complainEvery {
		return false
	}
	if len(c.last) >= maxComplaints {
		for old, last := range c.last {
			if now.Sub(last) >= complainEvery {
				delete(c.last, old)
			}
		}
	}
	if len(c.last) >= maxComplaints {
		return false
	}
	c.last[about] = now
	return true
}
