package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1 // something broke: a port is taken, a disk is full
	exitUsage   = 2 // the configuration is wrong; nothing was touched
)

// run is the program without its process: it starts a node as args and env say, keeps it until ctx
// ends, stops it, and returns the exit status. Help and version go to stdout, everything else to
// stderr.
func run(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) int {
	cfg, err := parse(args, env)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "semserver: %s\n", oneLine(err))
		return exitUsage
	}
	if cfg.page != "" {
		_, _ = io.WriteString(stdout, cfg.page)
		return exitOK
	}

	log := newLogger(stderr, cfg.Log)
	if err := serve(ctx, cfg, log); err != nil {
		log.Error("stopped by a failure", "error", oneLine(err))
		return exitFailure
	}
	log.Info("stopped")
	return exitOK
}

// serve opens a node, keeps it until ctx ends, and closes it.
func serve(ctx context.Context, cfg config, log *slog.Logger) error {
	a, err := open(cfg, log)
	if err != nil {
		return err
	}
	return a.run(ctx)
}
