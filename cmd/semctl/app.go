package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"

	"github.com/semserver/semserver/internal/cli"
	"github.com/semserver/semserver/internal/version"
)

const description = `Uses and looks after the semaphores of a semserver.

Guard a job: semctl run --sem NAME --capacity N -- COMMAND. Look: semctl list, info, holders, waiters, top.

The flags of the group Connection may be set by the environment: SEMCTL_ADDR for --addr. TIME is written as 300ms, 5s, 1h30m. Exit status: 0 done, 1 refused or not held, 64 wrong command line, 69 no server or an unknown outcome, 75 no permit in time.`

// errShown ends the parsing: a page was asked for and has been printed.
var errShown = errors.New("page shown")

// run is the program without its process. It returns the exit status.
func run(ctx context.Context, args []string, p process) int {
	err := runCommand(ctx, args, p)
	if text := complaint(err); text != "" {
		// A broken standard error leaves nobody to tell.
		_, _ = fmt.Fprintln(p.stderr, text)
	}
	return statusOf(err)
}

func runCommand(ctx context.Context, args []string, p process) error {
	var c commands
	parser, err := newParser(&c, p)
	if err != nil {
		return fail(exitFailure, "declare the command line: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	selected, err := parser.Parse(cli.JoinNegative(args))
	switch {
	case errors.Is(err, errShown):
		return nil
	case err != nil:
		return &statusError{exitUsage, err}
	}
	servers, err := c.Connection.config(p.env)
	if err != nil {
		return &statusError{exitUsage, err}
	}
	s := &session{process: p, servers: servers, json: c.JSON}
	// Only a command whose Run has a context for parameter leaves signals to it.
	stop := context.CancelFunc(func() {})
	defer func() { stop() }()
	err = selected.BindSingletonProvider(func() (context.Context, error) {
		ctx, stop = untilSignal(ctx)
		return ctx, nil
	})
	if err != nil {
		return fail(exitFailure, "declare the context: %w", err)
	}
	return selected.Run(s, parser)
}

func newParser(c *commands, p process) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("semctl"),
		kong.Description(description),
		kong.NoDefaultHelp(),
		kong.Writers(p.stdout, p.stderr),
		kong.Resolvers(p.env),
		cli.Durations(),
		kong.KindMapper(reflect.String, kong.MapperFunc(decodeBytes)),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100, NoExpandSubcommands: true}),
	)
}

// decodeBytes takes a word as it is: names and holders may be any bytes, which kong would make UTF-8.
func decodeBytes(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("text")
	if err != nil {
		return err
	}
	target.SetString(fmt.Sprint(token.Value))
	return nil
}

// helpFlag prints the page of the command that it stands with.
type helpFlag bool

// BeforeReset implements kong's hook.
func (helpFlag) BeforeReset(selected *kong.Context) error {
	if err := selected.PrintUsage(false); err != nil {
		return err
	}
	return errShown
}

// versionFlag prints the version.
type versionFlag bool

// BeforeReset implements kong's hook.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	if _, err := fmt.Fprintln(app.Stdout, "semctl", version.Name()); err != nil {
		return err
	}
	return errShown
}
