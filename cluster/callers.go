package cluster

import (
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// callerMemory is how long an empty node remembers another that has asked who it is.
	callerMemory = 10 * time.Second
	// maxCallers bounds how many are remembered.
	maxCallers = 64
)

// callers are the addresses of nodes that have asked this one a moment ago. Among empty nodes that
// makes it enough that each can reach one that all others reach: they need not all be given all
// addresses.
type callers struct {
	mu   sync.Mutex
	last map[string]time.Time // by address
}

func newCallers() *callers { return &callers{last: make(map[string]time.Time)} }

// note remembers a caller, unless there are too many.
func (c *callers) note(address string) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(now)
	if _, known := c.last[address]; address != "" && (known || len(c.last) < maxCallers) {
		c.last[address] = now
	}
}

// recent returns who has called a moment ago.
func (c *callers) recent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(time.Now())
	return slices.Sorted(maps.Keys(c.last))
}

// forget must be called under the lock.
func (c *callers) forget(now time.Time) {
	maps.DeleteFunc(c.last, func(_ string, when time.Time) bool { return now.Sub(when) > callerMemory })
}
