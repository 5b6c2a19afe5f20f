package main

import (
	"context"
	"errors"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

type deleteCommand struct {
	keyArgument
	Force bool `help:"Also while permits are held: their holders have lost them."`
	confirmFlag
}

// Help is printed below the summary.
func (*deleteCommand) Help() string {
	return "Whoever waits is told that it is gone. Exit status 1: there is none, or it is held and --force was not given."
}

func (c *deleteCommand) Run(ctx context.Context, s *session) error {
	servers := remote.Open(s.servers)
	defer servers.Close()
	if err := c.ask(ctx, s, servers); err != nil {
		return err
	}
	command := remote.Command{Args: func() []any { return []any{"SEM.DELETE", c.Name} }, Once: true}
	if c.Force {
		command.Args = func() []any { return []any{"SEM.DELETE", c.Name, "FORCE"} }
	}
	reply, err := servers.Do(ctx, command)
	if err != nil {
		return err
	}
	deleted := reply.Value == any(int64(1))
	o := object{{"semaphore", text(c.Name)}, {"deleted", deleted}}
	if !deleted {
		return s.no(o, "there is no semaphore %s", visible(c.Name))
	}
	return s.say(o, "deleted")
}

// ask names what would be lost, and has it confirmed.
func (c *deleteCommand) ask(ctx context.Context, s *session, servers *remote.Servers) error {
	if c.Yes {
		return nil
	}
	reply, err := servers.Do(ctx, remote.Question("SEM.INFO", c.Name))
	var refused *remote.Refusal
	if errors.As(err, &refused) && refused.Code == "NOSEM" {
		return s.no(object{{"semaphore", text(c.Name)}, {"deleted", false}}, "there is no semaphore %s", visible(c.Name))
	}
	if err != nil {
		return err
	}
	info, err := remote.ReadFields(reply.Value)
	if err != nil {
		return err
	}
	return c.confirm(ctx, s, "delete %s, of which %d of %d permits are held and for which %d wait",
		visible(c.Name), info.Number("in_use"), info.Number("capacity"), info.Number("waiters"))
}

type reconcileCommand struct {
	keyArgument
	Capacity *int64 `placeholder:"N" help:"Take over permits that were made by hand in a Redis, with this capacity."`
}

func (c *reconcileCommand) Run(ctx context.Context, s *session) error {
	words := []any{"SEM.RECONCILE", c.Name}
	if c.Capacity != nil {
		words = append(words, "CAPACITY", *c.Capacity)
	}
	reply, err := s.ask(ctx, remote.Words(words...))
	if err != nil {
		return err
	}
	back, _ := reply.Value.(int64)
	return s.say(object{{"semaphore", text(c.Name)}, {"reconciled", back}}, "%d permits are back in circulation", back)
}
