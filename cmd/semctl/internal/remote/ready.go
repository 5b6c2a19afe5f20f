package remote

import (
	"context"
	"errors"
	"strings"
)

// unready is what a server says of itself while it cannot decide: it has no leader, or no Redis.
const unready = "semserver_ready:0"

// errUndecided is what it would answer a request with, some seconds later.
var errUndecided = &Refusal{Code: "CLUSTERDOWN", Text: "CLUSTERDOWN the server has no leader, or no Redis, and cannot decide"}

// ready has a server say that it lives and can decide, before it is asked for anything: a process that is
// stopped takes connections and would be waited for in vain, and a server without a leader holds a request
// for longer than we may have time.
func (s *Servers) ready(ctx context.Context, asked *client) error {
	ctx, cancel := context.WithTimeout(ctx, s.answerTime())
	defer cancel()
	value, err := refusal(asked.Do(ctx, "INFO", "server").Result())
	var refused *Refusal
	switch text, _ := value.(string); {
	case err != nil && judge(err) == answered && errors.As(err, &refused):
		return nil // it lives, and does not tell
	case errors.As(err, &refused):
		return err
	case err != nil:
		return &unsent{err}
	case strings.Contains(text, unready):
		return errUndecided
	}
	return nil
}
