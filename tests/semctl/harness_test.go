package semctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// The programs under test, built once for all tests. They lie in folder, which is first in the PATH of
// every semctl and shell that a test starts.
var folder, semserver, semctl string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "semctl-tests-"); err == nil {
		defer os.RemoveAll(folder)
		semserver, err = node.Build(folder)
	}
	if err == nil {
		semctl = filepath.Join(folder, "semctl")
		var out []byte
		out, err = exec.Command("go", "build", "-o", semctl, "github.com/semserver/semserver/cmd/semctl").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("build semctl: %w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// server is a running semserver.
type server struct {
	*node.Node
	t    *testing.T
	data string
}

// start runs a semserver on a fresh data directory for the length of the test.
func start(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{t: t, data: t.TempDir()}
	var err error
	if s.Node, err = node.Start(semserver, "127.0.0.1:0", s.data, flags...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Kill() })
	return s
}

// restart runs the server again on its address and data, after it has been stopped or killed.
func (s *server) restart(flags ...string) {
	s.t.Helper()
	n, err := node.Start(semserver, s.Addr, s.data, flags...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Node = n
}

// do sends a command by itself.
func (s *server) do(args ...any) any {
	s.t.Helper()
	c, err := resp.Dial(s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	reply, err := c.Do(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

// figure is one field of SEM.INFO.
func (s *server) figure(key, field string) int64 {
	s.t.Helper()
	flat, _ := s.do("SEM.INFO", key).([]any)
	for i := 0; i+1 < len(flat); i += 2 {
		if n, ok := flat[i+1].(int64); ok && flat[i] == any(field) {
			return n
		}
	}
	s.t.Fatalf("SEM.INFO %s: got %v, want the field %s", key, flat, field)
	return 0
}

// await waits until a field of SEM.INFO has a value.
func (s *server) await(key, field string, want int64) {
	s.t.Helper()
	trial.Await(s.t, func() error {
		if got := s.figure(key, field); got != want {
			return fmt.Errorf("%s of %s: got %d, want %d", field, key, got, want)
		}
		return nil
	})
}

// command is a semctl that uses this server, and is killed when the test ends at the latest.
func (s *server) command(args ...string) *exec.Cmd {
	return semctlAt(s.t, s.Addr, args...)
}

// semctlAt is a semctl that uses these addresses.
func semctlAt(t *testing.T, addr string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), semctl, args...)
	c.Env = environment("SEMCTL_ADDR=" + addr)
	return c
}

// environment is that of the test without the variables of semctl, and with others.
func environment(more ...string) []string {
	env := []string{"PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SEMCTL_") && !strings.HasPrefix(v, "PATH=") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// outcome is what came of a call.
type outcome struct {
	status         int
	stdout, stderr string
}

// running is a command that has been started.
type running struct {
	*exec.Cmd
	t              *testing.T
	stdout, stderr bytes.Buffer
}

// begin starts a command.
func begin(t *testing.T, c *exec.Cmd) *running {
	t.Helper()
	r := &running{Cmd: c, t: t}
	c.Stdout, c.Stderr = &r.stdout, &r.stderr
	if err := c.Start(); err != nil {
		t.Fatalf("%v: %v", c.Args, err)
	}
	return r
}

// end waits until the command has ended.
func (r *running) end() outcome {
	r.t.Helper()
	err := r.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("%v: %v", r.Args, err)
	}
	return outcome{r.ProcessState.ExitCode(), r.stdout.String(), r.stderr.String()}
}

// finish runs a command to its end.
func finish(t *testing.T, c *exec.Cmd) outcome {
	t.Helper()
	return begin(t, c).end()
}

// ctl calls semctl and wants that exit status.
func (s *server) ctl(status int, args ...string) outcome {
	s.t.Helper()
	o := finish(s.t, s.command(args...))
	if o.status != status {
		s.t.Fatalf("semctl %q: got status %d, want %d\n%s%s", args, o.status, status, o.stdout, o.stderr)
	}
	return o
}

// ok calls semctl, wants it to succeed, and returns what it printed.
func (s *server) ok(args ...string) string {
	s.t.Helper()
	return s.ctl(0, args...).stdout
}

// object calls semctl --json and reads the one object that it prints.
func (s *server) object(status int, args ...string) map[string]any {
	s.t.Helper()
	all := s.objects(status, args...)
	if len(all) != 1 {
		s.t.Fatalf("semctl %q: got %d objects, want 1", args, len(all))
	}
	return all[0]
}

// objects calls semctl --json and reads the objects that it prints.
func (s *server) objects(status int, args ...string) []map[string]any {
	s.t.Helper()
	o := s.ctl(status, append(args, "--json")...)
	var all []map[string]any
	for line := range strings.Lines(o.stdout) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			s.t.Fatalf("semctl %q: got %q, want JSON: %v", args, line, err)
		}
		all = append(all, one)
	}
	return all
}
