package peer

import (
	"context"
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

// Complaints are what the log is told of what is tried again and again: not a line for each attempt. They
// may be used by many goroutines at once.
type Complaints struct {
	log   *slog.Logger
	every time.Duration

	mu   sync.Mutex
	last map[complaint]time.Time
}

type complaint struct{ about, what string }

// NewComplaints returns complaints that repeat themselves once in a while.
func NewComplaints(log *slog.Logger, every time.Duration) *Complaints {
	return &Complaints{log: log, every: every, last: make(map[complaint]time.Time)}
}

// Say logs what is wrong, unless it was said of the same a moment ago: of an address, or, where about is
// empty, at all.
func (c *Complaints) Say(level slog.Level, what, about string, args ...any) {
	if c.fresh(complaint{about, what}, time.Now()) {
		c.log.Log(context.Background(), level, what, args...)
	}
}

// complain logs what is wrong with an address and why.
func (n *Network) complain(what, address string, why error) {
	n.complaints.Say(slog.LevelWarn, what, address, "address", address, "error", why)
}

func (c *Complaints) fresh(about complaint, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, said := c.last[about]; said && now.Sub(last) < c.every {
		return false
	}
	if len(c.last) >= maxComplaints {
		for old, last := range c.last {
			if now.Sub(last) >= c.every {
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
