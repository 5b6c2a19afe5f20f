package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// build compiles a command of the project that this example belongs to, or the example itself.
func build(t *testing.T, folder, pkg string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "binary")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", folder, "-o", binary, pkg).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// serve runs a semserver for the length of the test and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	server := exec.Command(build(t, "../..", "./cmd/semserver"),
		"--listen", "127.0.0.1:0", "--http", "", "--data-dir", t.TempDir(), "--log-format", "json")
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Msg, Listen string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			return line.Listen
		}
	}
	t.Fatal("the semserver ended before it was ready")
	return ""
}

func TestPausedHoldersWriteIsRefused(t *testing.T) {
	story := exec.CommandContext(t.Context(), build(t, ".", "."), "-addr", serve(t))
	story.Stderr = os.Stderr

	out, err := story.Output()

	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := regexp.MustCompile(`^slow: holds slot 0 with token (\d+)
slow is paused for longer than its lease
quick: holds slot 0 with token (\d+)
quick: written
slow goes on, and knows nothing
slow: refused: the permit is stale: a newer holder has written in its slot
the report has a row of quick, token (\d+)
$`)
	m := want.FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("got this story, want a match of %s:\n%s", want, out)
	}
	if slow, quick := m[1], m[2]; len(slow) > len(quick) || slow >= quick || m[3] != quick {
		t.Errorf("got tokens %s, %s and %s, want a larger one for quick, in its row", slow, quick, m[3])
	}
	fmt.Fprint(t.Output(), string(out))
}
