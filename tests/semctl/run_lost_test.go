package semctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

// stubborn is a script that does not heed TERM, notes that it came, and writes down the time again and
// again until it is killed.
const stubborn = `trap 'echo asked >"$FOLDER/asked"' TERM
echo $$ >"$FOLDER/pid"
while :; do date +%s%N >"$FOLDER/alive.new"; mv "$FOLDER/alive.new" "$FOLDER/alive"; done`

// lastAlive is when a stubborn script wrote last.
func (g *guarded) lastAlive() time.Time {
	g.t.Helper()
	nanos, err := strconv.ParseInt(g.read("alive"), 10, 64)
	if err != nil {
		g.t.Fatal(err)
	}
	return time.Unix(0, nanos)
}

// leaseEnd is a moment before which the lease of the only holder is not over. Nothing may renew it any
// more.
func (s *server) leaseEnd(key string) time.Time {
	s.t.Helper()
	asked := time.Now()
	return asked.Add(time.Duration(s.holder(key)[4].(int64)) * time.Millisecond)
}

// TestCommandIsDeadBeforeTheEndOfALeaseThatCannotBeRenewed measures by what the command itself has
// written last, and by the server's own word on the lease.
func TestCommandIsDeadBeforeTheEndOfALeaseThatCannotBeRenewed(t *testing.T) {
	const lease = 6 * time.Second
	const margin = lease/100 + 50*time.Millisecond
	for name, silent := range map[string]bool{"silent network": true, "server gone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			wire := s.broken()
			g := guard(t, wire.Addr, stubborn, "--sem", "loader", "--capacity", "1", "--lease", lease.String()).start()
			pid := g.pid("pid")
			if wire.Silence(); !silent {
				wire.Shut()
			}
			end := s.leaseEnd("loader")

			g.wants(76)

			if alive(pid) {
				t.Error("the command still runs after semctl")
			}
			if got, want := g.lastAlive(), end.Add(-margin); !got.Before(want) {
				t.Errorf("the command was alive %v before the end of the lease, want it dead %v before", end.Sub(got), margin)
			} else {
				t.Logf("last alive %v before the end of a lease of %v", end.Sub(got), lease)
			}
			if got := g.read("asked"); got != "asked" {
				t.Errorf("got %q, want it to have been asked before", got)
			}
			if !strings.Contains(g.stderr.String(), "loader") {
				t.Errorf("got %q on stderr, want the reason", g.stderr.String())
			}
		})
	}
}

func TestOutageShorterThanTheLeaseIsNotNoticedByTheCommand(t *testing.T) {
	t.Parallel()
	s := start(t)
	wire := s.broken()
	g := guard(t, wire.Addr, `echo $$ >"$FOLDER/pid"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done; exit 5`,
		"--sem", "loader", "--capacity", "1", "--lease", "9s").start()
	g.pid("pid")
	token := s.holder("loader")[1]
	wire.Shut()
	trial.Await(t, func() error {
		if left := s.holder("loader")[4].(int64); left > 5000 {
			return fmt.Errorf("%d ms are left", left)
		}
		return nil
	})

	wire.Restore()

	trial.Await(t, func() error {
		if s.figure("loader", "renewals") == 0 {
			return errors.New("it was not renewed")
		}
		return nil
	})
	if got := s.holder("loader")[1]; got != token {
		t.Errorf("token: got %v, want %v: the same grant", got, token)
	}
	g.put("go")
	g.wants(5)
	if got := g.stderr.String(); got != "" {
		t.Errorf("got %q, want nothing to be said", got)
	}
	s.free("loader")
}

func TestRestartOfTheServerIsNotNoticedByTheCommand(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, `echo $$ >"$FOLDER/pid"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done; exit 5`,
		"--sem", "loader", "--capacity", "1", "--lease", "20s").start()
	g.pid("pid")

	s.Kill()
	s.restart()
	t.Cleanup(func() { s.Kill() })

	trial.Await(t, func() error {
		if s.figure("loader", "renewals") == 0 {
			return errors.New("it was not renewed")
		}
		return nil
	})
	g.put("go")
	g.wants(5)
	s.free("loader")
}

func TestWhatBecomesOfACommandWhosePermitIsLostIsUpToTheFlag(t *testing.T) {
	for _, c := range []struct {
		flag   []string
		asked  string // the file that shows how it was asked
		status int
	}{
		{[]string{"--on-lost", "keep"}, "", 6},
		{[]string{"--on-lost", "signal", "--signal", "USR1"}, "USR1", 6},
	} {
		t.Run(c.flag[1], func(t *testing.T) {
			t.Parallel()
			s := start(t)
			g := guard(t, s.Addr, `trap 'echo x >"$FOLDER/USR1"' USR1; trap 'echo x >"$FOLDER/TERM"' TERM
echo $$ >"$FOLDER/pid"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done; exit 6`,
				append(c.flag, "--sem", "loader", "--capacity", "1", "--lease", "1500ms")...).start()
			g.pid("pid")

			s.do("SEM.RELEASE", "loader", s.holder("loader")[0])

			trial.Await(t, func() error {
				if !strings.Contains(g.stderr.String(), "lost") {
					return errors.New("nothing was said of the loss")
				}
				return nil
			})
			if c.asked != "" {
				g.read(c.asked)
			}
			g.put("go")
			g.wants(c.status)
			if _, err := os.Stat(filepath.Join(g.folder, "TERM")); err == nil {
				t.Error("the command was sent TERM, want it not")
			}
			if got := strings.Count(g.stderr.String(), "lost"); got != 1 {
				t.Errorf("got %q, want the loss told once", g.stderr.String())
			}
		})
	}
}

func TestCommandWhosePermitWasTakenIsAskedAndThenKilled(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, stubborn, "--sem", "loader", "--capacity", "1", "--lease", "3s", "--grace", "300ms").start()
	pid := g.pid("pid")
	s.do("SEM.RELEASE", "loader", s.holder("loader")[0])

	g.wants(76)

	g.read("asked")
	if alive(pid) || !strings.Contains(g.stderr.String(), "not held any more") {
		t.Errorf("got a command that runs: %v, and %q; want it dead and the reason", alive(pid), g.stderr.String())
	}
}

func TestCommandOfASemctlThatWasStoppedPastItsLeaseIsKilledWhenItContinues(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, `trap "" TERM; echo $$ >"$FOLDER/pid"; while :; do sleep 0.02; done`,
		"--sem", "loader", "--capacity", "1", "--lease", "1500ms").start()
	pid := g.pid("pid")

	g.signal(syscall.SIGSTOP)
	s.await("loader", "in_use", 0)
	if !alive(pid) {
		t.Fatal("the command has ended though nobody could have ended it")
	}
	g.signal(syscall.SIGCONT)

	g.wants(76)
	if alive(pid) || !strings.Contains(g.stderr.String(), "lost") {
		t.Errorf("got a command that runs: %v, and %q; want it dead and the loss told", alive(pid), g.stderr.String())
	}
}

// TestBusyCommandDoesNotDelayTheRenewal burns every core for several leases.
func TestBusyCommandDoesNotDelayTheRenewal(t *testing.T) {
	t.Parallel()
	s := start(t)
	burn := strings.Repeat("(while [ -e \"$FOLDER\" ]; do :; done) & ", 2*runtime.NumCPU())
	g := guard(t, s.Addr, burn+`echo $$ >"$FOLDER/pid"; while [ ! -e "$FOLDER/go" ]; do :; done; exit 5`,
		"--sem", "loader", "--capacity", "1", "--lease", "2s").start()
	g.pid("pid")

	trial.Await(t, func() error {
		if got := s.figure("loader", "renewals"); got < 6 {
			return fmt.Errorf("renewals: got %d, want 6", got)
		}
		return nil
	})

	g.put("go")
	g.wants(5)
	s.free("loader")
}

// TestCommandIsKilledInTimeThoughNobodyReadsWhatSemctlSays fills the pipe of its standard error first.
func TestCommandIsKilledInTimeThoughNobodyReadsWhatSemctlSays(t *testing.T) {
	t.Parallel()
	s := start(t)
	wire := s.broken()
	g := guard(t, wire.Addr, stubborn, "--sem", "loader", "--capacity", "1", "--lease", "4s")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		_, err = w.Write([]byte("x\n"))
	}
	g.Stderr = w
	g.start()
	pid := g.pid("pid")

	wire.Silence()

	end := s.leaseEnd("loader")
	gone(t, pid)
	if got := g.lastAlive(); !got.Before(end) {
		t.Errorf("the command was alive %v after the end of the lease", got.Sub(end))
	}
}

// put makes a file for the script to see.
func (g *guarded) put(name string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.folder, name), nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
}
