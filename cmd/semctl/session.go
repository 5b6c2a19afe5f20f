package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// process is what the program is given by the system.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            environment
}

// session is one call of the program, as a command sees it.
type session struct {
	process
	servers remote.Config
	json    bool
}

// ask sends one command and returns its reply.
func (s *session) ask(ctx context.Context, c remote.Command) (remote.Reply, error) {
	servers := remote.Open(s.servers)
	defer servers.Close()
	return servers.Do(ctx, c)
}

// untilSignal returns a context that ends at the first signal which asks for an end. The second one
// has its default effect. What the parent has set to be ignored, as nohup does, stays ignored.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
