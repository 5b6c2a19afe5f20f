package semctl

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const examples = "../../examples"

// exampleFiles are the files of the examples with one of these endings, and their text.
func exampleFiles(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(examples, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, ending := range endings {
			if strings.HasSuffix(path, ending) {
				text, err := os.ReadFile(path)
				files[path] = string(text)
				return err
			}
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: got %d files and %v", len(files), err)
	}
	return files
}

// TestSemctlUnderstandsTheExamples runs each semctl run of the examples, as it stands there, with another
// command.
func TestSemctlUnderstandsTheExamples(t *testing.T) {
	t.Parallel()
	s := start(t)
	call := regexp.MustCompile(`(?s)semctl (run .*?)(?:\s-- |--keep .*?[&\n])`)
	calls := 0
	for path, text := range exampleFiles(t, "crontab", ".service", ".yaml") {
		for _, found := range call.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			calls++
			c := exec.CommandContext(t.Context(), "sh", "-c", semctl+" "+strings.Join(strings.Fields(found[1]), " ")+" -- true")
			c.Env = environment("SEMCTL_ADDR="+s.Addr, "POD_NAME=pod")
			if o := finish(t, c); o.status != 0 {
				t.Errorf("%s: %q: got status %d, want 0\n%s", path, found[1], o.status, o.stderr)
			}
		}
	}
	if calls < 7 {
		t.Errorf("got %d calls of semctl run in the examples, want all of them", calls)
	}
}

func TestManifestsAreYAML(t *testing.T) {
	t.Parallel()
	for path, text := range exampleFiles(t, ".yaml") {
		documents := 0
		for d := yaml.NewDecoder(bytes.NewReader([]byte(text))); ; documents++ {
			var one map[string]any
			err := d.Decode(&one)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || len(one) == 0 {
				t.Fatalf("%s: got %v and %v, want a document", path, one, err)
			}
		}
		if documents == 0 {
			t.Errorf("%s: got no document", path)
		}
	}
}

// TestHundredAndTwentyOnePodsLoadTheirCaches plays the story with real processes. The database itself counts
// how many load at a time.
func TestHundredAndTwentyOnePodsLoadTheirCaches(t *testing.T) {
	t.Parallel()
	s := start(t)
	pods := filepath.Join(t.TempDir(), "pods")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", pods, "github.com/semserver/semserver/examples/pods").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	c := exec.CommandContext(t.Context(), pods, "-addr", s.Addr, "-semctl", semctl)
	c.Env = environment()

	o := finish(t, c)

	want := regexp.MustCompile(`(?s)^121 pods start at once; the database bears 8 loads at a time

without semctl
  at most \d+ loaded at a time: the database broke down
  \d+ pods have their cache, [1-9]\d* failed

with semctl run
  at most [1-8] loaded at a time: the database held
  121 pods have their cache, 0 failed

with semctl run, and a third is killed while it loads
  at most [1-8] loaded at a time: the database held
  41 were killed, and started again
  121 pods have their cache, 0 failed
$`)
	if o.status != 0 || !want.MatchString(o.stdout) {
		t.Fatalf("got status %d and this story, want a match of %s:\n%s%s", o.status, want, o.stdout, o.stderr)
	}
	s.await("cache-loader", "in_use", 0)
	if got := s.figure("cache-loader", "expirations"); got != 41 {
		t.Errorf("leases that ended by themselves: got %d, want one for each pod that was killed", got)
	}
	t.Log(o.stdout)
}
