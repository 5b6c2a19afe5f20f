//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/cmd/semctl/internal/guard"
	"github.com/semserver/semserver/cmd/semctl/internal/job"
	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// Run does it. It takes no context: signals belong to the command that runs.
func (c *guardCommand) Run(s *session) error {
	g, err := c.guard(s)
	if err != nil {
		return err
	}
	defer func() { _ = g.Client.Close() }() // nothing is to be sent any more
	servers := remote.Open(s.servers)
	defer servers.Close()
	outlet := guard.NewOutlet(s.stderr)
	defer outlet.Close()
	g.Report = &guard.Report{Out: outlet, JSON: s.json, Quiet: c.Quiet, Width: widthOf(s.stderr)}
	if !c.Quiet {
		g.Look = guard.LookAt(servers)
	}
	if c.Keep {
		return c.keep(s, g, servers)
	}
	status, err := g.Run()
	if err != nil {
		return c.refused(err)
	}
	return exitStatus(status)
}

// keep takes a permit and prints it.
func (c *guardCommand) keep(s *session, g *guard.Guard, servers *remote.Servers) error {
	p, status, err := g.Keep()
	switch {
	case err != nil:
		return c.refused(err)
	case p == nil:
		return exitStatus(status)
	case !p.Guarded():
		return fail(exitUnavailable, "%s: %w", visible(c.Sem), client.ErrUnavailable)
	}
	if err := c.tell(s, p); err != nil {
		if !p.Replayed() { // nobody knows its token
			ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
			defer cancel()
			_, _ = servers.Do(ctx, remote.Words("SEM.RELEASE", c.Sem, p.Holder(), "TOKEN", p.Token()))
		}
		return err
	}
	return nil
}

// tell prints a permit for whoever is to release it.
func (c *guardCommand) tell(s *session, p *client.Permit) error {
	if s.json {
		return s.printJSON(object{
			{"semaphore", text(c.Sem)}, {"holder", text(p.Holder())}, {"token", p.Token()}, {"slot", p.Slot()},
			{"slots", guard.SlotList(p.Slots())}, {"replayed", p.Replayed()},
		})
	}
	return s.print(fmt.Sprintf("SEM_NAME=%s\nSEM_HOLDER=%s\nSEM_TOKEN=%d\nSEM_SLOT=%d\nSEM_SLOTS=%s\n",
		shellWord(p.Name()), shellWord(p.Holder()), p.Token(), p.Slot(), guard.SlotList(p.Slots())))
}

// guard is what the flags say, checked.
func (c *guardCommand) guard(s *session) (*guard.Guard, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g := &guard.Guard{Name: c.Sem, Wait: c.Wait, Grace: c.Grace, OnLost: c.onLost()}
	var err error
	if g.Signal, err = signalNamed(c.Signal); err != nil {
		return nil, err
	}
	if g.Command, err = c.command(s); err != nil {
		return nil, err
	}
	g.Request = c.request()
	g.Client, err = client.New(client.Config{
		Addrs: s.servers.Addrs, Password: s.servers.Password, TLS: s.servers.TLS, Name: "semctl", Patience: s.servers.Patience,
	})
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return g, nil
}

// command looks the command up before anybody waits in line for it.
func (c *guardCommand) command(s *session) (job.Command, error) {
	if c.Keep {
		return job.Command{}, nil
	}
	path, status, err := job.Find(c.Command[0])
	if err != nil {
		return job.Command{}, fail(status, "%w", err)
	}
	command := job.Command{Path: path, Args: c.Command, Env: s.env, Guardian: guardian()}
	for _, stream := range []struct {
		of any
		to *uintptr
	}{{s.stdin, &command.Stdin}, {s.stdout, &command.Stdout}, {s.stderr, &command.Stderr}} {
		file, ok := stream.of.(*os.File)
		if !ok {
			return job.Command{}, fail(exitFailure, "a command needs files for its streams")
		}
		*stream.to = file.Fd()
	}
	return command, nil
}

// guardian is how this program is called to be one; nothing where it does not know where it lies.
func guardian() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, "__guardian"}
}

// request is the Acquire.
func (c *guardCommand) request() []client.Option {
	options := []client.Option{client.Permits(c.Permits), client.Label(c.label())}
	if c.Persist {
		options = append(options, client.Persist())
	} else {
		options = append(options, client.Lease(c.Lease))
	}
	if !c.Try {
		options = append(options, client.Wait(c.Wait))
	}
	if c.Capacity != nil {
		options = append(options, client.Capacity(*c.Capacity))
	}
	if c.Holder != "" {
		options = append(options, client.Holder(c.Holder))
	} else {
		options = append(options, client.HolderPrefix(holderPrefix()))
	}
	if c.Fresh {
		options = append(options, client.Fresh())
	}
	if c.OnUnavailable == "run" {
		options = append(options, client.WhenUnavailable(client.FailOpen))
	}
	return options
}

// holderPrefix is by what people recognise this process in a listing.
func holderPrefix() string {
	host, err := os.Hostname()
	if err != nil {
		host = "semctl"
	}
	return fmt.Sprintf("%s-%d-", host, os.Getpid())
}

// label is what listings show. Without one it is the command's name: its arguments may be secret.
func (c *guardCommand) label() string {
	if c.Label != "" || len(c.Command) == 0 {
		return c.Label
	}
	return filepath.Base(c.Command[0])
}

// refused gives the errors of the client their exit statuses.
func (c *guardCommand) refused(err error) error {
	var refusal *client.Error
	var lost *client.LostError
	name := visible(c.Sem)
	switch {
	case errors.Is(err, client.ErrNoPermit) && c.Quiet:
		return exit(exitNotInTime)
	case errors.Is(err, client.ErrNoPermit):
		return fail(exitNotInTime, "%s: no permit in time", name)
	case errors.Is(err, client.ErrUnavailable):
		return fail(exitUnavailable, "%s: %w", name, err)
	case errors.Is(err, client.ErrQueueFull), errors.As(err, &lost):
		return fail(exitNotInTime, "%s: %w", name, err)
	case errors.As(err, &refusal):
		return fail(exitNo, "%s: %w", name, err)
	case errors.Is(err, client.ErrInvalid):
		return fail(exitUsage, "%s: %w", name, err)
	}
	return fail(exitFailure, "%s: %w", name, err)
}

func exitStatus(status int) error {
	if status == exitOK {
		return nil
	}
	return exit(status)
}

func (c *guardCommand) onLost() guard.OnLost {
	switch c.OnLost {
	case "keep":
		return guard.Ignore
	case "signal":
		return guard.Send
	}
	return guard.Kill
}

// signalNamed reads TERM, SIGTERM or a number.
func signalNamed(name string) (syscall.Signal, error) {
	upper := strings.ToUpper(name)
	if s := unix.SignalNum("SIG" + strings.TrimPrefix(upper, "SIG")); s != 0 {
		return s, nil
	}
	return 0, fail(exitUsage, "--signal: there is no signal %s", visible(name))
}

// widthOf returns how wide a terminal is at a moment; nil if the stream is none.
func widthOf(stream any) func() int {
	file, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(file.Fd()) {
		return nil
	}
	return func() int {
		width, _, err := term.GetSize(file.Fd())
		if err != nil {
			return 0
		}
		return width
	}
}

// shellWord quotes a text for a shell.
func shellWord(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// check refuses what contradicts itself.
func (c *guardCommand) check() error {
	separated := len(c.Command) > 0 && c.Command[0] == "--"
	if separated {
		c.Command = c.Command[1:]
	}
	switch {
	case !separated && len(c.Command) > 0 && strings.HasPrefix(c.Command[0], "-"):
		return fail(exitUsage, "unknown flag %s", visible(c.Command[0]))
	case c.Keep && len(c.Command) > 0:
		return fail(exitUsage, "--keep runs no command: the permit is for another process")
	case !c.Keep && len(c.Command) == 0:
		return fail(exitUsage, "there is no command to run")
	case c.Persist && !c.Keep:
		return fail(exitUsage, "--persist needs --keep: a command that is killed would hold its permit for ever")
	case c.Persist && c.Holder == "":
		return fail(exitUsage, "--persist needs --holder: nobody could release what is held under an id that was lost")
	case c.Fresh && c.Holder == "":
		return fail(exitUsage, "--fresh needs --holder: it fences off who held under that id before")
	case c.Lease < client.MinLease:
		return fail(exitUsage, "--lease: %v is shorter than %v", c.Lease, client.MinLease)
	case c.Lease%time.Millisecond != 0 || c.Wait%time.Millisecond != 0:
		return fail(exitUsage, "--lease and --wait are whole milliseconds")
	case c.Wait < 0:
		return fail(exitUsage, "--wait: %v is negative", c.Wait)
	case c.Grace < 0 || c.Grace > guard.LongestGrace(c.Lease):
		return fail(exitUsage, "--grace: %v is not within 0s … %v, which leaves time to renew a lease of %v",
			c.Grace, guard.LongestGrace(c.Lease), c.Lease)
	case strings.ContainsRune(c.Sem+c.Holder, 0):
		return fail(exitUsage, "a name with a zero byte cannot be told to a command")
	}
	return nil
}
