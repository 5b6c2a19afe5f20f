package load

import (
	"fmt"
	"time"
)

// target is what is put under load.
type target interface {
	// prepare makes the semaphores, with that many permits each.
	prepare(c *conn, keys []string, capacity int64) error
	// acquire adds the command that takes a permit.
	acquire(c *conn, key, holder string, wait time.Duration)
	// settle adds what has to be said after a permit was got, before it counts; it reports how many
	// replies that has.
	settle(c *conn, key, holder string, wait time.Duration) (replies int)
	// release adds the command that gives it back.
	release(c *conn, key, holder string)
	// clean removes the semaphores.
	clean(c *conn, keys []string) error
}

// lease is that of every permit: longer than a pause of this machine, short enough that what a broken
// run leaves behind is gone soon.
const lease = 60 * time.Second

// semserver is the target that this project is about.
type semserver struct{}

func (semserver) prepare(c *conn, keys []string, capacity int64) error {
	for _, key := range keys {
		if _, err := c.do("SEM.CREATE", key, capacity, "IDLE", time.Hour.Milliseconds()); err != nil {
			return fmt.Errorf("create %s: %w", key, err)
		}
	}
	return nil
}

func (semserver) acquire(c *conn, key, holder string, wait time.Duration) {
	if wait == 0 {
		c.add("SEM.ACQUIRE", key, "HOLDER", holder, "LEASE", lease.Milliseconds())
		return
	}
	c.add("SEM.ACQUIRE", key, "HOLDER", holder, "LEASE", lease.Milliseconds(), "WAIT", wait.Milliseconds())
}

func (semserver) settle(*conn, string, string, time.Duration) int { return 0 }

func (semserver) release(c *conn, key, holder string) { c.add("SEM.RELEASE", key, holder) }

func (semserver) clean(c *conn, keys []string) error {
	for _, key := range keys {
		if _, err := c.do("SEM.DELETE", key, "FORCE"); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
	}
	return nil
}
