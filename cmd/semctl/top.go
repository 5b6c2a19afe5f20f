package main

import (
	"context"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/top"
)

type topCommand struct {
	Pattern  string        `arg:"" optional:"" default:"*" help:"Only names that match this glob."`
	Interval time.Duration `default:"1s" placeholder:"TIME" help:"Time between two looks (default: ${default})."`
	Limit    int           `default:"5000" placeholder:"N" help:"Look at this many semaphores at most (default: ${default})."`
}

// Help is printed below the summary.
func (*topCommand) Help() string {
	return "The key ? explains the others. NO_COLOR takes the colours away."
}

// minInterval keeps a view from being a load.
const minInterval = 100 * time.Millisecond

func (c *topCommand) Run(ctx context.Context, s *session) error {
	switch {
	case c.Interval < minInterval:
		return fail(exitUsage, "--interval: %v is less than %v", c.Interval, minInterval)
	case c.Limit < 1:
		return fail(exitUsage, "--limit: %d is less than 1", c.Limit)
	case !isTerminal(s.stdin) || !isTerminal(s.stdout):
		return fail(exitUsage, "top needs a terminal; semctl list does not")
	}
	return top.Run(ctx, top.Config{Servers: s.servers, Interval: c.Interval, Match: c.Pattern, Limit: c.Limit}, s.stdin, s.stdout, s.env)
}
