package semctl

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	network "github.com/semserver/semserver/tests/proxy"
)

// guarded is a semctl run whose command is a shell script. The script finds a folder of its own in
// $FOLDER.
type guarded struct {
	*exec.Cmd
	t      *testing.T
	folder string
	stdout trial.Journal
	stderr trial.Journal
}

// guard prepares a semctl run of a script at this address. Flags come before the command.
func guard(t *testing.T, addr, script string, flags ...string) *guarded {
	t.Helper()
	args := append(append([]string{"run"}, flags...), "--", "sh", "-c", script)
	g := &guarded{Cmd: semctlAt(t, addr, args...), t: t, folder: t.TempDir()}
	g.Env = append(g.Env, "FOLDER="+g.folder)
	g.Stdout, g.Stderr = &g.stdout, &g.stderr
	// What outlives semctl may hold its output open; nobody waits for that.
	g.WaitDelay = time.Second
	return g
}

// start begins it.
func (g *guarded) start() *guarded {
	g.t.Helper()
	if err := g.Start(); err != nil {
		g.t.Fatal(err)
	}
	return g
}

// status waits for its end. That somebody holds its output open is not looked at.
func (g *guarded) status() int {
	g.t.Helper()
	_ = g.Wait() // the state tells
	return g.ProcessState.ExitCode()
}

// wants checks its exit status.
func (g *guarded) wants(status int) {
	g.t.Helper()
	if got := g.status(); got != status {
		g.t.Errorf("%q: got status %d, want %d\n%s", g.Args, got, status, g.stderr.String())
	}
}

// signal sends one to semctl alone.
func (g *guarded) signal(s syscall.Signal) {
	g.t.Helper()
	if err := g.Process.Signal(s); err != nil {
		g.t.Fatal(err)
	}
}

// read waits until the script has written a file with a whole line, and returns it.
func (g *guarded) read(name string) string {
	g.t.Helper()
	var text []byte
	trial.Await(g.t, func() error {
		var err error
		if text, err = os.ReadFile(filepath.Join(g.folder, name)); err != nil {
			return err
		}
		if !strings.HasSuffix(string(text), "\n") {
			return fmt.Errorf("%s: got %q, want a line", name, text)
		}
		return nil
	})
	return strings.TrimSpace(string(text))
}

// pid waits until the script has written a process id into a file. That process is killed at the end of
// the test at the latest.
func (g *guarded) pid(name string) int {
	g.t.Helper()
	pid, err := strconv.Atoi(g.read(name))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		if alive(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

// alive says whether there is such a process that has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	trial.Await(t, func() error {
		if alive(pid) {
			return fmt.Errorf("process %d still runs", pid)
		}
		return nil
	})
}

// free checks that nothing is held of a semaphore and nobody waits, and that no lease had to end for that.
func (s *server) free(key string) {
	s.t.Helper()
	for _, field := range []string{"in_use", "waiters", "expirations"} {
		if got := s.figure(key, field); got != 0 {
			s.t.Errorf("%s of %s: got %d, want 0", field, key, got)
		}
	}
}

// holder is the row of the only holder of a semaphore.
func (s *server) holder(key string) []any {
	s.t.Helper()
	page, _ := s.do("SEM.HOLDERS", key).([]any)
	if len(page) == 2 {
		if rows, _ := page[1].([]any); len(rows) == 1 {
			return rows[0].([]any)
		}
	}
	s.t.Fatalf("SEM.HOLDERS %s: got %v, want one holder", key, page)
	return nil
}

// broken is a network that can be broken, before a server.
func (s *server) broken() *network.Proxy {
	s.t.Helper()
	p, err := network.Start(s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = p.Close() })
	return p
}

// events reads what a semctl --json run has said on stderr.
func (g *guarded) events() []map[string]any {
	g.t.Helper()
	var all []map[string]any
	for line := range strings.Lines(g.stderr.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			g.t.Fatalf("got %q on stderr, want JSON: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}
