package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The README's table is what operators read; --help is what is true.
func TestReadmeListsEveryFlagWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := newParser(&flags{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range parser.Model.Flags {
		row := line(string(text), fmt.Sprintf("| `--%s", f.Name))
		if row == "" {
			t.Errorf("README.md has no row for --%s", f.Name)
			continue
		}
		if f.HasDefault && !strings.Contains(row, "| `"+f.Default+"` |") {
			t.Errorf("README.md, --%s: got %q, want the default %q", f.Name, row, f.Default)
		}
	}
}

// line returns the first line of text that begins with the flag in prefix, and not with a longer one.
func line(text, prefix string) string {
	for l := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(l, prefix); ok && (rest[0] == '`' || rest[0] == ' ') {
			return l
		}
	}
	return ""
}
