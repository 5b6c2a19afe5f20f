package client

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// document is docs/client.md.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the Go code of a document.
func blocks(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// compiled builds a program in a module of another project, which uses this one as the document says.
func compiled(t *testing.T, program string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/loader"},
		{"mod", "edit", "-replace", "github.com/semserver/semserver=" + root},
		{"mod", "tidy"},
		{"build", "-o", "loader", "."},
	} {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = folder
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
	}
	return filepath.Join(folder, "loader")
}

func TestProgramOfTheDocumentRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	program := blocks(document(t))[0]
	if !strings.Contains(program, `"127.0.0.1:7360"`) {
		t.Fatalf("got this program, want one that asks the address that a server has by default:\n%s", program)
	}
	loader := compiled(t, strings.Replace(program, "127.0.0.1:7360", b.node.Addr, 1))

	out, err := exec.Command(loader).CombinedOutput()

	if want := regexp.MustCompile(`^loading in slot 0, with token \d+\n$`); err != nil || !want.Match(out) {
		t.Errorf("got %q, %v, want a match of %s", out, err, want)
	}
	if got := b.info("cache-loader", "capacity"); got != 8 {
		t.Errorf("capacity: got %d, want 8", got)
	}
	if got := b.info("cache-loader", "in_use"); got != 0 {
		t.Errorf("in use afterwards: got %d, want 0", got)
	}
}

func TestOtherCodeOfTheDocumentCompiles(t *testing.T) {
	t.Parallel()
	all := blocks(document(t))
	program := all[0]
	for i, block := range all[1:] {
		program += fmt.Sprintf("\nfunc block%d(ctx context.Context, c *client.Client) error {\n%s}\n", i, block)
	}
	compiled(t, program)
}

func TestDocumentSaysHowAModuleFindsTheClient(t *testing.T) {
	t.Parallel()
	text := document(t)
	for _, want := range []string{
		"go mod edit -replace github.com/semserver/semserver=../semserver", "go mod tidy", "defer c.Close()",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/client.md lacks %q", want)
		}
	}
}
