package main

import (
	"context"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

type createCommand struct {
	keyArgument
	Capacity int64 `arg:"" help:"How many permits there are; 0 is a pause."`
	settingFlags
	IfAbsent bool  `help:"An existing semaphore is left as it is, whatever its settings."`
	MinToken int64 `placeholder:"TOKEN" help:"Lift the tokens of all semaphores above this one, for good."`
	confirmFlag
}

// Help is printed below the summary.
func (*createCommand) Help() string {
	return "If there is one already with every setting that is given, nothing changes. With others: exit status 1, and the message names them."
}

func (c *createCommand) Run(ctx context.Context, s *session) error {
	settings, err := c.words()
	if err != nil {
		return err
	}
	w := words{all: append([]any{"SEM.CREATE", c.Name, c.Capacity}, settings...)}
	option(&w, "MINTOKEN", c.MinToken)
	if c.IfAbsent {
		w.all = append(w.all, "IFABSENT")
	}
	if c.MinToken != 0 {
		if err := c.confirm(ctx, s, "lift the tokens of all semaphores above %d, for good", c.MinToken); err != nil {
			return err
		}
	}
	if _, err := s.ask(ctx, remote.Words(w.all...)); err != nil {
		return err
	}
	return s.say(object{{"semaphore", text(c.Name)}, {"capacity", c.Capacity}}, "ready")
}

type resizeCommand struct {
	keyArgument
	Capacity int64 `arg:"" help:"How many permits there shall be in all; 0 is a pause."`
	settingFlags
}

// Help is printed below the summary.
func (*resizeCommand) Help() string {
	return "Nothing is taken from anybody: after a change to less, nothing is granted until enough has come back. Settings that are not given stay."
}

func (c *resizeCommand) Run(ctx context.Context, s *session) error {
	settings, err := c.words()
	if err != nil {
		return err
	}
	reply, err := s.ask(ctx, remote.Words(append([]any{"SEM.RESIZE", c.Name, c.Capacity}, settings...)...))
	if err != nil {
		return err
	}
	usage, err := remote.ReadNumbers(reply.Value, 3)
	if err != nil {
		return err
	}
	return s.say(
		object{{"semaphore", text(c.Name)}, {"capacity", usage[0]}, {"in_use", usage[1]}, {"available", usage[2]}},
		"capacity %d, in use %d, available %d", usage[0], usage[1], usage[2],
	)
}
