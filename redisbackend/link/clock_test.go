package link

import (
	"testing"
	"testing/synctest"
	"time"
)

// clockOf is a server's clock, which reads as much more than ours.
type clockOf struct {
	*clock
	ahead time.Duration
}

// look is a look at it, half of whose time the request takes and half the reply.
func (c *clockOf) look(trip time.Duration) {
	before := c.own()
	time.Sleep(trip / 2)
	server := c.now()
	time.Sleep(trip - trip/2)
	c.see(server, before, c.own())
}

func (c *clockOf) now() time.Duration { return time.Duration(time.Now().UnixNano()) + c.ahead }

// check fails when the estimate is ahead of the clock, or behind by more than this.
func (c *clockOf) check(t *testing.T, behind time.Duration) Instant {
	t.Helper()
	got := c.clock.now()
	if late := c.now().Milliseconds() - got.Millis; late < 0 || late > behind.Milliseconds()+1 {
		t.Errorf("the estimate is behind by %d ms, want 0 to %v", late, behind)
	}
	return got
}

func TestTheEstimateIsNeverAheadOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockOf{newClock(), -time.Hour}
		c.look(400 * time.Millisecond)
		c.check(t, 200*time.Millisecond)
		c.look(10 * time.Millisecond)
		c.check(t, 5*time.Millisecond)
		c.look(time.Second) // a slow look teaches nothing that is not known
		c.check(t, 7*time.Millisecond)
		time.Sleep(time.Minute)
		c.check(t, 70*time.Millisecond)
		c.look(0)
		if got := c.check(t, 0); got.Era != 1 {
			t.Errorf("era: got %d, want 1", got.Era)
		}
	})
}

func TestTheEstimateDoesNotGoBackWithinAnEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockOf{newClock(), 0}
		c.look(0)
		was := c.check(t, 0)
		c.ahead = -50 * time.Millisecond
		c.look(0)
		if got := c.clock.now(); got != was {
			t.Errorf("after a small step back: got %v, want %v", got, was)
		}
		time.Sleep(time.Second)
		c.check(t, 2*time.Millisecond)
	})
}

func TestASteppedClockBeginsAnEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockOf{newClock(), 0}
		for era, ahead := range []time.Duration{0, -time.Hour, time.Hour, 0} {
			c.ahead = ahead
			c.look(20 * time.Millisecond)
			if got := c.check(t, 10*time.Millisecond); got.Era != uint64(era+1) {
				t.Errorf("%v ahead: got era %d, want %d", ahead, got.Era, era+1)
			}
		}
	})
}

func TestBeforeTheFirstLookTheClockIsOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := newClock().now(); got != (Instant{time.Now().UnixMilli(), 0}) {
			t.Errorf("got %v, want our own time in era 0", got)
		}
	})
}
