package tests

import (
	"fmt"
	"io"
	"testing"

	"github.com/semserver/semserver/internal/trial"
)

// A node that stops tells its waiters so; those who come back through another node, as the same
// holders, stand where they stood.
func TestGracefulStopOfTheLeaderCostsNobodyItsPlace(t *testing.T) {
	t.Parallel()
	s := form(t, "--waiter-grace", "60s")
	lead, rest := s.leader(), s.followers()
	look := s.dial(rest[0])
	look.want("OK", "SEM.CREATE", "door", 1)
	last := look.acquire("door", "HOLDER", "x", "LEASE", 600_000)
	var line []*client
	var names []string
	for i, node := range []int{lead, rest[0], lead, rest[1], lead} {
		w := s.dial(node)
		names = append(names, fmt.Sprint("w", i))
		w.send("SEM.ACQUIRE", "door", "HOLDER", names[i], "WAIT", 600_000)
		look.wantLine("door", names...)
		line = append(line, w)
	}

	stop(t, s.members[lead].node)

	// In another order than they came first.
	for _, i := range []int{4, 0, 2} {
		line[i].refused("SHUTDOWN")
		if _, err := line[i].Receive(patience); err != io.EOF {
			t.Errorf("after SHUTDOWN: got %v, want the connection closed", err)
		}
		line[i] = s.dial(rest[i%2])
		line[i].send("SEM.ACQUIRE", "door", "HOLDER", names[i], "WAIT", 600_000)
	}
	trial.Await(t, func() error {
		if got := look.info("door")["orphans"]; got != 0 {
			return fmt.Errorf("got %d waiters who have not come back, want none", got)
		}
		return nil
	})
	look.wantLine("door", names...)
	for i, w := range line {
		look.want(1, "SEM.RELEASE", "door", last.holder)
		g := w.granted()
		if g.holder != names[i] || g.token <= last.token || g.replayed {
			t.Errorf("grant %d: got %+v after %+v, want %s anew", i, g, last, names[i])
		}
		last = g
	}
}

// wantLine waits until these holders, and no others, stand in line in this order.
func (c *client) wantLine(key string, holders ...string) {
	c.Helper()
	trial.Await(c.T, func() error {
		page, ok := c.do("SEM.WAITERS", key).([]any)
		if !ok {
			return fmt.Errorf("got %v, want a page", page)
		}
		var got []string
		for _, w := range page[1].([]any) {
			got = append(got, fmt.Sprint(w.([]any)[0]))
		}
		if fmt.Sprint(got) != fmt.Sprint(holders) {
			return fmt.Errorf("the line: got %v, want %v", got, holders)
		}
		return nil
	})
}
