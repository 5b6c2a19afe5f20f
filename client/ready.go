package client

import (
	"context"
	"errors"
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// unready is what a server says of itself while it cannot decide: it has no leader, or no Redis.
const unready = "semserver_ready:0"

// ready asks a server for a sign of life, and whether it can decide. A request to one that cannot would be
// held for some seconds before it is refused. The error is ErrClosed or an *unanswered: ErrDown where the
// server lives.
func (c *Client) ready(ctx context.Context, at *node) error {
	within := min(signTimeout, max(c.config.Patience, minPatience)/2)
	reply, err := c.exchange(ctx, at.calls, within, "INFO", "server")
	var none *unanswered
	switch {
	case errors.As(err, &none):
		return &unanswered{err: none.err} // whatever was sent, it changes nothing
	case errors.Is(err, ErrClosed):
		return err
	}
	if text, ok := reply.(string); ok && strings.Contains(text, unready) {
		return &unanswered{err: semaphore.ErrDown}
	}
	return nil // also where it refuses to tell
}
