package main

import (
	"context"
	"os"

	"github.com/charmbracelet/x/term"
	"github.com/redis/go-redis/v9"
)

func main() {
	redis.SetLogger(silence{}) // it writes to stderr what is returned as an error as well
	os.Exit(run(context.Background(), os.Args[1:], process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(),
	}))
}

// isTerminal says whether somebody sits behind a stream.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}

// silence is a logger that writes nothing.
type silence struct{}

// Printf implements go-redis's logger.
func (silence) Printf(context.Context, string, ...any) {}
