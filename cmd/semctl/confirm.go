package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirmFlag says yes in advance to what destroys something.
type confirmFlag struct {
	Yes bool `short:"y" help:"Do not ask."`
}

// confirm asks whoever sits at the terminal, on stderr. Where nobody does, nothing may be destroyed
// without --yes.
func (f confirmFlag) confirm(s *session, format string, args ...any) error {
	if f.Yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !isTerminal(s.stdin) {
		return fail(exitUsage, "%s: nobody can be asked here; --yes confirms it", question)
	}
	// Without an answer on the next line nothing is done, so an error needs no word.
	_, _ = fmt.Fprintf(s.stderr, "%s? [y/N] ", question)
	answer, _ := bufio.NewReader(s.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fail(exitUsage, "nothing was done")
}
