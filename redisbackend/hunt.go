package redisbackend

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// hunters is how many semaphores are hunted for at a time, each by a connection.
	hunters = 4
	// hungryAfter is how long the head of a line waits beside clients who work by hand before its server
	// takes its turn among them.
	hungryAfter = 500 * time.Millisecond
	// hungryFor is how long after a hunt a line is hungry from the start.
	hungryFor = 5 * time.Second
	// gatherFor is how long permits are kept back that do not suffice yet for the head of the line.
	gatherFor = 2 * time.Second
	// huntFor is how long a turn at one semaphore lasts at most, while others may be hungry too.
	huntFor = 2 * time.Second
)

// hunt is the search for one permit among clients who work by hand. They hand permits on to each other:
// whoever releases one pushes it, and Redis gives it at once to whoever has waited longest in BRPOP, so
// no script ever finds one. So this server stands in that line too, as one of them, while its own line
// gets nothing. What it gets it takes along to the next call, which hands it over.
type hunt struct {
	key  string
	over atomic.Bool // nobody is hungry any more
}

// hunting is what desks are hungry for.
type hunting chan *hunt

// begin has a permit hunted for. Nil: all hunters are busy.
func (h hunting) begin(key string) *hunt {
	one := &hunt{key: key}
	select {
	case h <- one:
		return one
	default:
		return nil
	}
}

// hunter hunts for one desk after the other, until ctx ends.
func (e *Engine) hunter(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-e.core.office.hunting:
			caught, err := e.hunt(ctx, h)
			if err != nil && ctx.Err() == nil {
				e.cfg.Logger.Debug("no permit could be taken by hand", "semaphore", h.key, "error", err)
			}
			e.core.caught(h.key, caught)
		}
	}
}

// hunt takes a permit from the List, as a client by hand does. It reports false when it got none. A
// permit that is lost on the way is restored by the periodic pass.
func (e *Engine) hunt(ctx context.Context, h *hunt) (bool, error) {
	permits := e.remote.library.Layout().Permits(h.key)
	s, err := e.remote.link.Session(ctx, permits)
	if err != nil {
		return false, err
	}
	defer s.Close()
	// It must end before the reply is given up, and ctx must not break it off: a permit would be lost.
	turn := strconv.FormatFloat((e.cfg.Link.Timeout * 3 / 5).Seconds(), 'f', 3, 64)
	for began := time.Now(); !h.over.Load() && time.Since(began) < huntFor && ctx.Err() == nil; {
		reply, err := s.Do(context.WithoutCancel(ctx), "BRPOP", permits, turn)
		if err != nil || reply != nil {
			return reply != nil, err
		}
	}
	return false, nil
}

// caught ends a hunt.
func (c *core) caught(key string, got bool) {
	l := c.loop(key)
	l.post(func() {
		d := l.desk(key)
		d.hunt = nil
		if !got {
			return
		}
		if d.caught == 0 {
			d.since = time.Now()
		}
		d.caught++
		d.urgent = true
	})
}

// bring is how many permits the next call takes along of those that were caught. A head that wants
// several gets them together: apart, each would go back to where it came from.
func (d *desk) bring() int64 {
	w := d.line.head()
	if w != nil && d.caught < w.acquire.Permits && time.Since(d.since) < gatherFor {
		return 0
	}
	n := d.caught
	d.caught = 0
	return n
}

// huntIf hunts for the line while it is hungry beside clients who work by hand.
func (d *desk) huntIf(raw bool) {
	w := d.line.head()
	now := time.Now()
	hungry := raw && w != nil && (now.Sub(w.arrived) >= hungryAfter || now.Sub(d.hunted) < hungryFor)
	switch {
	case hungry && d.hunt == nil:
		if d.hunt = d.loop.office.hunting.begin(d.key); d.hunt != nil {
			d.hunted = now
		}
	case !hungry && d.hunt != nil:
		d.hunt.over.Store(true)
	}
}
