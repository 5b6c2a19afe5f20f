package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
)

func main() {
	redis.SetLogger(silence{}) // it writes to stderr what is returned as an error as well
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	// After the first signal the second one has its default effect: it ends the process at once.
	context.AfterFunc(ctx, stop)
	env := readEnvironment(os.Environ())
	tuneCollector(env)
	os.Exit(run(ctx, os.Args[1:], env, os.Stdout, os.Stderr))
}

// stopSignals are the signals that ask for a stop. What the parent has set to be ignored, as nohup and
// a shell's & do, stays ignored.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}
