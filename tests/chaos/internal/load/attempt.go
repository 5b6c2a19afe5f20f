package load

import (
	"context"
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// Semaphore is one that clients work with.
type Semaphore struct {
	Key      string
	Capacity int64
	Most     int64 // permits that one request asks for
	HangUps  bool  // whether clients leave the line by ending the connection
}

const (
	shortestLease, longestLease = 2 * time.Second, 3 * time.Second
	longestWait                 = 3 * time.Second
	// longestHold is how long a client keeps a permit between two requests, and longestPause what it
	// does without one.
	longestHold, longestPause = 60 * time.Millisecond, 40 * time.Millisecond
	// repeats is how often a client asks again that was not answered, before it gives up.
	repeats = 4
	// watchEnd is how long a client watches a lease end that it does not renew.
	watchEnd, watchEvery = 20 * time.Second, 100 * time.Millisecond
)

// Client works through attempts. It belongs to one goroutine.
type Client struct {
	*Caller
	Semaphores []Semaphore
	attempts   int
}

// Run goes on until the context ends, and then finishes what it is at.
func (c *Client) Run(ctx context.Context) {
	defer c.Close()
	for ctx.Err() == nil {
		s := c.Semaphores[c.Random.IntN(len(c.Semaphores))]
		c.attempts++
		o := history.Op{
			Kind: history.Acquire, Key: s.Key, Holder: fmt.Sprintf("h%d.%d", c.ID, c.attempts),
			Permits: 1 + c.Random.Int64N(s.Most), Lease: shortestLease + c.upTo(longestLease-shortestLease).Truncate(time.Millisecond),
		}
		if c.oneIn(3) {
			c.begin(ctx, o)
			continue
		}
		o.Wait = c.upTo(longestWait).Truncate(time.Millisecond)
		if s.HangUps && c.oneIn(5) {
			if r := c.HangUp(o, time.Millisecond+c.upTo(o.Wait+time.Millisecond)); r.Outcome == history.Done {
				c.hold(ctx, o, r.Grant)
			}
			continue
		}
		c.begin(ctx, o)
	}
}

func (c *Client) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(c.Random.Int64N(int64(d)))
}

func (c *Client) oneIn(n int) bool { return c.Random.IntN(n) == 0 }

func (c *Client) rest(d time.Duration) { <-time.After(c.upTo(d)) }

// begin asks for a permit and does with it what clients do.
func (c *Client) begin(ctx context.Context, o history.Op) {
	r := c.Ask(o)
	for tries := 0; r.Outcome == history.Unknown && tries < repeats && ctx.Err() == nil; tries++ {
		if c.oneIn(4) {
			c.withdraw(o)
			return
		}
		c.TurnAway()
		r = c.Ask(o)
	}
	switch r.Outcome {
	case history.Done:
		c.hold(ctx, o, r.Grant)
	case history.Unknown:
		c.withdraw(o)
	default:
		c.turnedDown(o, r)
	}
}

// withdraw makes sure that nothing is left of a request that was not answered.
func (c *Client) withdraw(o history.Op) {
	for _, kind := range []history.Kind{history.Cancel, history.Release} {
		for range repeats {
			if r := c.Ask(history.Op{Kind: kind, Key: o.Key, Holder: o.Holder}); r.Outcome != history.Unknown && r.Code != unreachable {
				break
			}
			c.TurnAway()
		}
	}
}

// turnedDown looks now and then whether a refusal was one.
func (c *Client) turnedDown(o history.Op, r history.Result) {
	if r.Code == unreachable {
		return
	}
	if r.Outcome == history.Refused && c.oneIn(2) {
		c.TurnAway()
	}
	if c.oneIn(4) {
		c.Ask(history.Op{Kind: history.Release, Key: o.Key, Holder: o.Holder})
	}
	c.rest(longestPause)
}

// hold uses a grant, and ends it in one way or another.
func (c *Client) hold(ctx context.Context, o history.Op, g history.Grant) {
	named := history.Op{Key: o.Key, Holder: o.Holder, Token: g.Token}
	if o.Wait > 0 && !c.renew(named, o.Lease) {
		return
	}
	for range c.Random.IntN(4) {
		c.rest(longestHold)
		switch c.Random.IntN(8) {
		case 0, 1:
			if !c.renew(named, o.Lease) {
				return
			}
		case 2, 3:
			c.askAgain(o)
		case 4:
			fresh, ok := c.refresh(o)
			if !ok {
				return
			}
			old := named
			named.Token = fresh.Token
			c.check(old)
		default:
			c.check(named)
		}
		if c.oneIn(20) {
			c.TurnAway()
		}
	}
	c.end(ctx, named)
}

func (c *Client) renew(named history.Op, lease time.Duration) bool {
	named.Kind, named.Lease = history.Renew, lease
	r := c.Ask(named)
	return r.Outcome != history.Done || r.Number > 0
}

func (c *Client) check(named history.Op) history.Result {
	named.Kind = history.Check
	return c.Ask(named)
}

// askAgain repeats the request that got the grant, as a client does that has forgotten it.
func (c *Client) askAgain(o history.Op) {
	o.Wait = 0
	c.Ask(o)
}

// refresh fences off whoever had the grant until now. After a doubtful answer the client lets go.
func (c *Client) refresh(o history.Op) (history.Grant, bool) {
	o.Wait, o.Fresh = 0, true
	r := c.Ask(o)
	if r.Outcome != history.Done {
		c.withdraw(o)
	}
	return r.Grant, r.Outcome == history.Done
}

// end gives the permit back, perhaps twice, or leaves it to the lease.
func (c *Client) end(ctx context.Context, named history.Op) {
	if c.oneIn(8) {
		c.watchItEnd(ctx, named)
		return
	}
	named.Kind = history.Release
	for range repeats {
		if r := c.Ask(named); r.Outcome == history.Done {
			break
		}
		c.TurnAway()
	}
	if c.oneIn(3) {
		c.Ask(named)
	}
	if c.oneIn(3) {
		c.check(named)
	}
	c.rest(longestPause)
}

// watchItEnd looks at the grant until it is over.
func (c *Client) watchItEnd(ctx context.Context, named history.Op) {
	for began := time.Now(); time.Since(began) < watchEnd && ctx.Err() == nil; {
		if r := c.check(named); r.Outcome == history.Done && r.Number == 0 {
			return
		}
		<-time.After(watchEvery)
	}
}
