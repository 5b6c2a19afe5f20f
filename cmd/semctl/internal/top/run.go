package top

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// Config says what to look at.
type Config struct {
	Servers  remote.Config
	Interval time.Duration // between two looks
	Match    string        // glob of the names
	Limit    int           // of how many semaphores
}

// lookPatience is how long a look may take: what is shown is live, or said to be old.
const lookPatience = 2 * time.Second

// Run shows the view on a terminal until it is quit, or ctx ends.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer, env []string) error {
	ctx, stop := context.WithCancel(ctx)
	cfg.Servers.Patience = min(cfg.Servers.Patience, lookPatience)
	asked := remote.Open(cfg.Servers)
	defer asked.Close()
	defer stop()
	m := &Model{
		ctx: ctx, interval: cfg.Interval, title: strings.Join(cfg.Servers.Addrs, ","),
		source: servers{asked, cfg.Match, cfg.Limit},
	}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(env),
		tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
