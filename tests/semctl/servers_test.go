package semctl

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
)

// nobody is an address at which connections are refused.
func nobody(t *testing.T) string {
	t.Helper()
	addr, err := node.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestNextServerIsAskedWhenOneCannotBeReached(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "1")
	for _, first := range []string{nobody(t), silent(t)} {
		o := finish(t, semctlAt(t, first+","+s.Addr, "info", "pool", "--timeout", "4s"))

		if o.status != 0 || !strings.Contains(o.stdout, "pool") {
			t.Errorf("%s first: got %+v, want the answer of the second", first, o)
		}
	}
}

// silent is an address that accepts connections and never answers, as a stopped process does.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestNoServerEndsWithStatus69InTime(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"list"}, {"acquire", "pool"}, {"release", "pool", "w"}, {"delete", "pool", "--yes"}} {
		began := time.Now()

		o := finish(t, semctlAt(t, nobody(t)+","+nobody(t), append(args, "--timeout", "300ms")...))

		if o.status != 69 || !strings.Contains(o.stderr, "no server answers") || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: got %+v, want status 69 and one line", args, o)
		}
		if passed := time.Since(began); passed > trial.Patience {
			t.Errorf("%q: it took %v", args, passed)
		}
	}
}

func TestServerThatOnlyTakesConnectionsIsNoServer(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"release", "pool", "w"}, {"delete", "pool", "--yes"}, {"acquire", "pool", "--wait", "1h"}} {
		o := finish(t, semctlAt(t, silent(t), append(args, "--timeout", "300ms")...))

		if o.status != 69 || !strings.Contains(o.stderr, "no server answers") {
			t.Errorf("%q: got %+v, want that no server answers", args, o)
		}
	}
}

// A waiter is told SHUTDOWN when its server stops. It comes back with the same holder.
func TestWaitGoesOnWhenTheServerComesBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("acquire", "pool", "--capacity", "1", "--holder", "w", "--lease", "1h")
	waiting := begin(t, s.command("acquire", "pool", "--wait", "1m", "--holder", "next"))
	s.await("pool", "waiters", 1)

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s.restart()
	s.await("pool", "waiters", 1)
	s.Kill()
	s.restart()
	s.await("pool", "waiters", 1)
	s.ok("release", "pool", "w")

	if o := waiting.end(); o.status != 0 || !strings.Contains(o.stdout, "next") {
		t.Errorf("got %+v, want a grant to next", o)
	}
}

func TestStoppedServerIsLeftForAnother(t *testing.T) {
	t.Parallel()
	a, b := start(t), start(t)
	a.ok("acquire", "pool", "--capacity", "1", "--holder", "w")
	b.ok("create", "pool", "1")
	waiting := begin(t, semctlAt(t, a.Addr+","+b.Addr, "acquire", "pool", "--wait", "1m", "--holder", "next"))
	a.await("pool", "waiters", 1)

	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}

	if o := waiting.end(); o.status != 0 {
		t.Errorf("got %+v, want a grant by the other server", o)
	}
	if got := b.figure("pool", "in_use"); got != 1 {
		t.Errorf("in use at the other server: got %d, want 1", got)
	}
}

func TestPausedServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "1")
	_ = s.Process.Signal(syscall.SIGSTOP)
	asking := begin(t, s.command("acquire", "pool", "--holder", "w"))
	time.AfterFunc(300*time.Millisecond, func() { _ = s.Process.Signal(syscall.SIGCONT) })

	if o := asking.end(); o.status != 0 {
		t.Errorf("got %+v, want a grant", o)
	}
	if got := s.figure("pool", "in_use"); got != 1 {
		t.Errorf("in use: got %d, want 1", got)
	}
}

func TestUnixSocketIsAnAddress(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	start(t, "--unix", socket)
	for _, addr := range []string{socket, "unix:" + socket} {
		if o := finish(t, semctlAt(t, addr, "list")); o.status != 0 {
			t.Errorf("%s: got %+v, want status 0", addr, o)
		}
	}
}

func TestPasswordComesFromAFileOrTheEnvironment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("open sesame\nnot this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--password-file", file)
	for _, c := range []struct {
		args   []string
		env    string
		status int
		stderr string
	}{
		{nil, "", 1, "NOAUTH"},
		{nil, "SEMCTL_PASSWORD=wrong", 1, "WRONGPASS"},
		{nil, "SEMCTL_PASSWORD=open sesame", 0, ""},
		{[]string{"--password-file", file}, "SEMCTL_PASSWORD=wrong", 0, ""},
		{nil, "SEMCTL_PASSWORD_FILE=" + file, 0, ""},
		{[]string{"--password-file", file + "x"}, "", 64, "--password-file"},
	} {
		command := s.command(append(c.args, "list", "--timeout", "5s")...)
		command.Env = append(command.Env, c.env)

		o := finish(t, command)

		if o.status != c.status || !strings.Contains(o.stderr, c.stderr) {
			t.Errorf("%q with %q: got %+v, want status %d and %q", c.args, c.env, o, c.status, c.stderr)
		}
	}
}

func TestWrongCommandLineSendsNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, args := range [][]string{
		{"nosuch"}, {"acquire"}, {"acquire", "pool", "--nosuch"}, {"acquire", "pool", "--wait", "long"},
		{"acquire", "pool", "--wait", "-1s", "--capacity", "1"}, {"acquire", "pool", "--lease", "1500us", "--capacity", "1"},
		{"acquire", "pool", "--lease", "1s", "--persist", "--holder", "w", "--capacity", "1"},
		{"create", "pool", "many"}, {"create", "pool", "1", "--idle", "-1s"}, {"release", "pool"},
		{"create", "pool", "1", "--timeout", "0s"}, {"create", "pool", "1", "--addr", "host:port"},
		{"create", "pool", "1", "--tls-cert", "x"}, {"create", "pool", "1", "--tls-ca", "/nosuch"},
		{"node"}, {"top"}, {"bench", "--wait", "1s", "--pipeline", "2"}, {"bench", "--clients", "0"}, {"completion", "csh"},
	} {
		o := s.ctl(64, args...)
		if o.stdout != "" || !strings.HasPrefix(o.stderr, "semctl: ") || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: got %q and %q, want one line on stderr", args, o.stdout, o.stderr)
		}
	}
	if got := fmt.Sprint(s.do("SEM.SCAN", 0)); got != "[0 []]" {
		t.Errorf("semaphores: got %s, want none", got)
	}
}
