package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// docs/semctl.md is what people read; --help is what is true.
func TestDocsListEveryCommandAndFlagWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("../../docs/semctl.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := newParser(&commands{}, process{})
	if err != nil {
		t.Fatal(err)
	}
	documented(t, "semctl", string(text), parser.Model.Flags)
	for _, n := range parser.Model.Leaves(true) {
		heading := "\n### `" + n.FullPath()
		for _, p := range n.Positional {
			heading += " " + p.ShortSummary()
		}
		_, section, found := strings.Cut(string(text), heading+"`\n")
		if !found {
			t.Errorf("docs/semctl.md has no heading %q", strings.TrimSpace(heading)+"`")
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		documented(t, n.FullPath(), section, n.Flags)
	}
}

// documented checks that a text has a row for each flag, with its default.
func documented(t *testing.T, command, text string, flags []*kong.Flag) {
	t.Helper()
	for _, f := range flags {
		row := ""
		for line := range strings.Lines(text) {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), "|")
			if strings.HasPrefix(line, "| `-") && strings.Contains(strings.NewReplacer("`", " ", ",", " ").Replace(first)+" ", " --"+f.Name+" ") {
				row = line
				break
			}
		}
		switch {
		case row == "":
			t.Errorf("%s: no row for --%s", command, f.Name)
		case f.HasDefault && !strings.Contains(row, fmt.Sprintf("| `%s` |", f.Default)):
			t.Errorf("%s, --%s: got %q, want the default %q", command, f.Name, row, f.Default)
		}
	}
}
