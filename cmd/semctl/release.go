package main

import (
	"context"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

type releaseCommand struct {
	holderArguments
	Token int64 `placeholder:"TOKEN" help:"Only the grant with this token."`
}

// Help is printed below the summary.
func (*releaseCommand) Help() string {
	return "Exit status 1: it was not held. To release what another process forgot is an operator's way to free a place."
}

func (c *releaseCommand) Run(ctx context.Context, s *session) error {
	w := words{all: []any{"SEM.RELEASE", c.Name, c.Holder}}
	option(&w, "TOKEN", c.Token)
	reply, err := s.ask(ctx, remote.Words(w.all...))
	if err != nil {
		return err
	}
	released := reply.Value == any(int64(1))
	o := object{{"semaphore", text(c.Name)}, {"holder", text(c.Holder)}, {"released", released}}
	switch {
	case released:
		return s.say(o, "released")
	case reply.Doubtful:
		// Nothing is held any more, which is what was asked for.
		o[2].value = nil
		return s.say(o, "not held any more: an earlier answer was lost, so whether it was before is not known")
	}
	return s.no(o, "%s does not hold %s", visible(c.Holder), visible(c.Name))
}

type renewCommand struct {
	holderArguments
	Lease   *time.Duration `xor:"lease" placeholder:"TIME" help:"Length of the lease (default: the one last given)."`
	Persist bool           `xor:"lease" help:"Without end."`
	Token   int64          `placeholder:"TOKEN" help:"Only the grant with this token."`
}

// Help is printed below the summary.
func (*renewCommand) Help() string { return "Exit status 1: it was not held, or is not any more." }

func (c *renewCommand) Run(ctx context.Context, s *session) error {
	w := words{all: []any{"SEM.RENEW", c.Name, c.Holder}}
	w.duration("LEASE", "--lease", c.Lease)
	if c.Persist {
		w.all = append(w.all, "PERSIST")
	}
	option(&w, "TOKEN", c.Token)
	if w.err != nil {
		return w.err
	}
	reply, err := s.ask(ctx, remote.Words(w.all...))
	if err != nil {
		return err
	}
	lease, _ := reply.Value.(int64)
	o := object{{"semaphore", text(c.Name)}, {"holder", text(c.Holder)}, {"renewed", lease != 0}, {"lease_ms", lease}}
	if lease == 0 {
		return s.no(o, "%s does not hold %s", visible(c.Holder), visible(c.Name))
	}
	if lease < 0 {
		return s.say(o, "held until it is released")
	}
	return s.say(o, "lease %s", span(time.Duration(lease)*time.Millisecond))
}

type checkCommand struct {
	holderArguments
	Token int64 `arg:"" help:"Token of the grant."`
}

// Help is printed below the summary.
func (*checkCommand) Help() string { return "Exit status 1: it is not." }

func (c *checkCommand) Run(ctx context.Context, s *session) error {
	reply, err := s.ask(ctx, remote.Question("SEM.CHECK", c.Name, c.Holder, c.Token))
	if err != nil {
		return err
	}
	live := reply.Value == any(int64(1))
	o := object{{"semaphore", text(c.Name)}, {"holder", text(c.Holder)}, {"token", c.Token}, {"live", live}}
	if !live {
		return s.no(o, "%s does not hold %s with token %d", visible(c.Holder), visible(c.Name), c.Token)
	}
	return s.say(o, "live")
}

type cancelCommand struct {
	keyArgument
	Holder string `arg:"" complete:"waiter" help:"Id of the holder."`
}

// Help is printed below the summary.
func (*cancelCommand) Help() string {
	return "Its request is answered that there was no permit in time. Exit status 1: it did not stand there."
}

func (c *cancelCommand) Run(ctx context.Context, s *session) error {
	reply, err := s.ask(ctx, remote.Words("SEM.CANCEL", c.Name, c.Holder))
	if err != nil {
		return err
	}
	left := reply.Value == any(int64(1))
	o := object{{"semaphore", text(c.Name)}, {"holder", text(c.Holder)}, {"cancelled", left}}
	switch {
	case left:
		return s.say(o, "left the line")
	case reply.Doubtful:
		o[2].value = nil
		return s.say(o, "not in line any more: an earlier answer was lost, so whether it was before is not known")
	}
	return s.no(o, "%s does not wait for %s", visible(c.Holder), visible(c.Name))
}

// no ends a command whose answer is no: the object on stdout as JSON, else a line on stderr.
func (s *session) no(o object, format string, args ...any) error {
	if !s.json {
		return fail(exitNo, format, args...)
	}
	if err := s.printJSON(o); err != nil {
		return err
	}
	return exit(exitNo)
}
