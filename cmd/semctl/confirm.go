package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/muesli/cancelreader"
)

// confirmFlag says yes in advance to what destroys something.
type confirmFlag struct {
	Yes bool `short:"y" help:"Do not ask."`
}

// confirm asks whoever sits at the terminal, on stderr. Where nobody does, nothing may be destroyed
// without --yes.
func (f confirmFlag) confirm(ctx context.Context, s *session, format string, args ...any) error {
	if f.Yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !isTerminal(s.stdin) {
		return fail(exitUsage, "%s: nobody can be asked here; --yes confirms it", question)
	}
	// Whoever does not see the question cannot answer it, and nothing is done.
	_, _ = fmt.Fprintf(s.stderr, "%s? [y/N] ", question)
	answer, err := s.readLine(ctx)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fail(exitUsage, "nothing was done")
}

// readLine reads a line from the terminal, or until ctx ends. An end of the input is an empty line.
func (s *session) readLine(ctx context.Context) (string, error) {
	in, err := cancelreader.NewReader(s.stdin)
	if err != nil {
		return "", fail(exitFailure, "read the answer: %w", err)
	}
	defer func() { _ = in.Close() }() // it gives back what it needed to be cancelled, not the terminal
	stop := context.AfterFunc(ctx, func() { in.Cancel() })
	defer stop()
	line, _ := bufio.NewReader(in).ReadString('\n')
	if ctx.Err() != nil {
		// The line on the terminal is not ended yet.
		_, _ = fmt.Fprintln(s.stderr)
		return "", ctx.Err()
	}
	return line, nil
}
