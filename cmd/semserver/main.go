package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the second one has its default effect: it ends the process at once.
	context.AfterFunc(ctx, stop)
	env := readEnvironment(os.Environ())
	tuneCollector(env)
	os.Exit(run(ctx, os.Args[1:], env, os.Stdout, os.Stderr))
}
