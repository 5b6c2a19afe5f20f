package main

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/semserver/semserver/cmd/semctl/internal/complete"
	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// completionScripts connect a shell with completeCommand, a file for each.
//
//go:embed completion
var completionScripts embed.FS

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"${enum}."`
}

// Help is printed below the summary.
func (*completionCommand) Help() string {
	return `bash: source <(semctl completion bash), in ~/.bashrc. zsh: source <(semctl completion zsh), in ~/.zshrc below compinit. fish: semctl completion fish > ~/.config/fish/completions/semctl.fish. Names of semaphores, holders and nodes are asked from the server that SEMCTL_ADDR or --addr names.`
}

func (c *completionCommand) Run(s *session) error {
	script, err := completionScripts.ReadFile("completion/semctl." + c.Shell)
	if err != nil {
		return fail(exitFailure, "completion: %w", err)
	}
	return s.print(string(script))
}

// completeCommand prints what may stand at the end of a command line, a candidate a line: the word, a
// tab, what it is.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Bounds of what a key press may cost.
const (
	completePatience = 500 * time.Millisecond
	maxCompletions   = 200
)

func (c *completeCommand) Run(ctx context.Context, s *session, parser *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	place := complete.At(parser.Model.Node, words)
	var out strings.Builder
	for _, found := range place.Candidates {
		fmt.Fprintf(&out, "%s\t%s\n", found.Word, found.Help)
	}
	// A server that does not answer is no reason to disturb somebody who types.
	for _, found := range s.lookUp(ctx, place) {
		fmt.Fprintf(&out, "%s%s\t%s\n", place.Before, found.Word, found.Help)
	}
	return s.print(out.String())
}

// lookUp asks a server for the names that may stand at a place.
func (s *session) lookUp(ctx context.Context, place complete.Place) []complete.Candidate {
	if place.Kind == "" {
		return nil
	}
	cfg, err := connectionOf(place.Given, s.process)
	if err != nil {
		return nil
	}
	cfg.Patience = completePatience
	servers := remote.Open(cfg)
	defer servers.Close()
	ctx, cancel := context.WithTimeout(ctx, completePatience)
	defer cancel()
	var found []complete.Candidate
	for name, help := range names(ctx, servers, place) {
		if strings.HasPrefix(name, place.Typed) && isWord(name) {
			found = append(found, complete.Candidate{Word: name, Help: visible(help)})
		}
		if len(found) == maxCompletions {
			break
		}
	}
	return found
}

// isWord says whether every shell takes a name for one word, and does nothing but pass it on. What would have
// to be quoted is not offered: anybody may have made it.
func isWord(name string) bool {
	if name == "" || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_./:@%+,-", rune(c)) {
			return false
		}
	}
	return true
}

// names yields names with what is known of them, until the first error.
func names(ctx context.Context, servers *remote.Servers, place complete.Place) func(yield func(name, help string) bool) {
	semaphore := place.Given["name"]
	return func(yield func(name, help string) bool) {
		switch place.Kind {
		case "semaphore":
			for name, err := range servers.Names(ctx, escapeGlob(place.Typed)+"*") {
				if err != nil || !yield(name, "semaphore") {
					return
				}
			}
		case "holder":
			for h, err := range servers.Holders(ctx, semaphore) {
				if err != nil || !yield(h.Holder, h.Client) {
					return
				}
			}
		case "waiter":
			for w, err := range servers.Waiters(ctx, semaphore) {
				if err != nil || !yield(w.Holder, w.Client) {
					return
				}
			}
		case "node":
			nodes, _ := servers.Nodes(ctx)
			for _, n := range nodes {
				if !yield(n.Text("id"), n.Text("label")) {
					return
				}
			}
		}
	}
}

// connectionOf reads the flags of the connection out of an unfinished command line.
func connectionOf(given map[string]string, p process) (remote.Config, error) {
	var c struct {
		Connection connection `embed:"" group:"Connection"`
	}
	parser, err := kong.New(&c, kong.NoDefaultHelp(), kong.Resolvers(p.env))
	if err != nil {
		return remote.Config{}, err
	}
	var args []string
	for _, f := range parser.Model.Flags {
		if value, ok := given[f.Name]; ok {
			args = append(args, "--"+f.Name+"="+value)
		}
	}
	if _, err := parser.Parse(args); err != nil {
		return remote.Config{}, err
	}
	return c.Connection.config(p.env)
}

// escapeGlob makes a glob of a text that matches it alone.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}
