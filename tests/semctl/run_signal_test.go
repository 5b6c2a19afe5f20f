package semctl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/semserver/semserver/internal/trial"
)

// family is a script whose shell, and the shell that this one has started, each write down the signal that
// reaches them. They say when they are ready. Both run in the foreground, for shells have what is in
// the background ignore some signals.
const family = `
listen='note() { echo $2 >"$FOLDER/$1.new"; mv "$FOLDER/$1.new" "$FOLDER/$1"; }
for s in TERM INT HUP QUIT USR1 USR2; do trap "note $self $s; exit 9" $s; done
note $self-pid $$'
self=child; eval "$listen"
self=grandchild sh -c "$listen; while :; do sleep 0.02; done"`

func TestSignalsReachTheCommandAndWhatItStarted(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, number := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		g := guard(t, s.Addr, family, "--sem", "loader", "--capacity", "1").start()
		child, grandchild := g.pid("child-pid"), g.pid("grandchild-pid")

		g.signal(number)

		g.wants(9)
		if got := g.read("child"); got != name {
			t.Errorf("%s: the child got %q", name, got)
		}
		if got := g.read("grandchild"); got != name {
			t.Errorf("%s: the grandchild got %q", name, got)
		}
		if alive(child) || alive(grandchild) {
			t.Errorf("%s: something still runs after semctl", name)
		}
		s.free("loader")
	}
}

func TestTermEndsWhatAShellLeftInTheBackground(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, `sleep 100 & echo $! >"$FOLDER/sleep"; wait`, "--sem", "loader", "--capacity", "1").start()
	pid := g.pid("sleep")

	g.signal(syscall.SIGTERM)

	g.wants(143)
	if alive(pid) {
		t.Error("the sleep still runs after semctl")
	}
	s.free("loader")
}

func TestCommandThatEndsLeavesNothingRunning(t *testing.T) {
	for name, script := range map[string]string{
		"heeds TERM": `sleep 100 & echo $! >"$FOLDER/pid"; exit 5`,
		"heeds none": `( trap "" TERM HUP INT; while :; do sleep 1; done ) & echo $! >"$FOLDER/pid"; exit 5`,
		"orphan":     `sh -c 'sleep 100 & echo $! >"$FOLDER/pid"' & wait; exit 5`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			g := guard(t, s.Addr, script, "--sem", "loader", "--capacity", "1", "--grace", "200ms").start()
			pid := g.pid("pid")
			g.wants(5)
			if alive(pid) {
				t.Error("what the command started still runs after semctl")
			}
			s.free("loader")
		})
	}
}

func TestPermitIsHeldUntilTheSlowestOfTheGroupHasEnded(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, `( trap 'sleep 0.5; echo $$ >"$FOLDER/late"; exit' TERM; echo $$ >"$FOLDER/on"; while :; do sleep 0.02; done ) & until [ -e "$FOLDER/on" ]; do sleep 0.02; done`,
		"--sem", "loader", "--capacity", "1").start()
	g.read("on")
	s.do("SEM.ACQUIRE", "loader", "HOLDER", "next", "WAIT", 60000)
	if _, err := os.Stat(filepath.Join(g.folder, "late")); err != nil {
		t.Errorf("the permit was granted before the last process had ended: %v", err)
	}
	s.do("SEM.RELEASE", "loader", "next")
	g.wants(0)
	s.free("loader")
}

func TestSignalEndsTheWait(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.ACQUIRE", "loader", "CAPACITY", 1, "HOLDER", "other", "LEASE", 3600000)
	for _, number := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		g := guard(t, s.Addr, "echo ran", "--sem", "loader").start()
		s.await("loader", "waiters", 1)

		g.signal(number)

		g.wants(128 + int(number))
		if g.stdout.String() != "" {
			t.Errorf("%v: got %q, want the command not to run", number, g.stdout.String())
		}
		if got := s.figure("loader", "waiters"); got != 0 {
			t.Errorf("%v: waiters: got %d, want 0", number, got)
		}
	}
}

func TestIgnoredSignalStaysIgnored(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, `echo on >"$FOLDER/on"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done; exit 6`, "--sem", "loader", "--capacity", "1")
	g.Args = append([]string{"nohup", semctl}, g.Args[1:]...)
	path, err := exec.LookPath("nohup")
	if err != nil {
		t.Fatal(err)
	}
	g.Path = path
	g.start()
	g.read("on")
	g.signal(syscall.SIGHUP)
	c := exec.CommandContext(t.Context(), "touch", g.folder+"/go")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	g.wants(6)
}

func TestKilledSemctlTakesTheCommandAndWhatItStartedWithIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, `sleep 1000 & echo $! >"$FOLDER/background"; sh -c 'echo $$ >"$FOLDER/pid"; exec sleep 1000'; echo over`,
		"--sem", "loader", "--capacity", "1", "--lease", "2s").start()
	background, pid := g.pid("background"), g.pid("pid")

	g.signal(syscall.SIGKILL)

	g.status()
	gone(t, pid)
	gone(t, background)
	s.await("loader", "in_use", 0)
	if got := s.figure("loader", "expirations"); got != 1 {
		t.Errorf("expirations: got %d, want the lease to have ended by itself", got)
	}
}

func TestGuardianEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	s := start(t)
	// Of the processes of this machine, that which semctl has started as a guardian.
	g := guard(t, s.Addr, `for p in /proc/[0-9]*; do
grep -sq _[_]guardian $p/cmdline && [ "$(cut -d ' ' -f 4 $p/stat)" = $PPID ] && basename $p; done >"$FOLDER/guardian"; exit 3`,
		"--sem", "loader", "--capacity", "1").start()
	pid := g.pid("guardian")
	g.wants(3)
	gone(t, pid)
}

func TestSemctlWhoseOutputNobodyReadsGoesOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.ACQUIRE", "loader", "CAPACITY", 1, "HOLDER", "other", "LEASE", 3600000)
	// The reader of its standard error ends at once.
	c := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(`{ %s run --sem loader -- sh -c 'echo ran'; echo "status $?"; } 2>&1 1>&3 | true`, semctl))
	c.Env = environment("SEMCTL_ADDR=" + s.Addr)
	var out trial.Journal
	c.Args[2] = "exec 3>&1; " + c.Args[2]
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.await("loader", "waiters", 1)
	trial.Await(t, func() error {
		if s.figure("loader", "oldest_wait_ms") < 600 {
			return fmt.Errorf("it has not been told of the line yet")
		}
		return nil
	})
	s.do("SEM.RELEASE", "loader", "other")
	_ = c.Wait()
	if got := out.String(); !strings.Contains(got, "ran") || !strings.Contains(got, "status 0") {
		t.Errorf("got %q, want the command to have run", got)
	}
	s.free("loader")
}
