package semctl

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
)

// says waits until semctl has said something that matches.
func (g *guarded) says(pattern string) {
	g.t.Helper()
	want := regexp.MustCompile(pattern)
	trial.Await(g.t, func() error {
		if got := g.stderr.String(); !want.MatchString(got) {
			return fmt.Errorf("stderr: got %q, want a match of %s", got, want)
		}
		return nil
	})
}

func TestWhoeverWaitsIsToldWhoHoldsForHowLongAndTheirPlace(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, h := range []string{"pod-1", "pod-2", "pod-3"} {
		s.do("SEM.ACQUIRE", "loader", "CAPACITY", 3, "HOLDER", h, "LABEL", "nightly", "LEASE", 3600000)
	}
	first := guard(t, s.Addr, "exit 0", "--sem", "loader", "--quiet").start()
	s.await("loader", "waiters", 1)
	second := guard(t, s.Addr, "exit 0", "--sem", "loader").start()

	second.says(`^semctl: waiting for loader: place 2 of 2; held by pod-1 \(nightly\) for \d[^ ]*s, pod-2 \(nightly\) for \d[^ ]*s and 1 more; waited \d+ms of 5m\n$`)
	s.do("SEM.RELEASE", "loader", "pod-1")
	first.wants(0)
	second.wants(0)

	if got := first.stderr.String(); got != "" {
		t.Errorf("with --quiet: got %q, want nothing", got)
	}
}

func TestWhoeverGetsAPermitAtOnceIsToldNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, "exit 0", "--sem", "loader", "--capacity", "1").start()
	g.wants(0)
	if got := g.stderr.String(); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestNamesInTheLineAreFitForATerminal(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.ACQUIRE", "loader", "CAPACITY", 1, "HOLDER", "a\x1b[2Jb", "LABEL", "\x1b]0;owned\a", "LEASE", 3600000)
	g := guard(t, s.Addr, "exit 0", "--sem", "loader").start()
	g.says(`held by "a\\x1b\[2Jb"`)
	if strings.ContainsAny(g.stderr.String(), "\x1b\a") {
		t.Errorf("got %q, want no control characters", g.stderr.String())
	}
	s.do("SEM.RELEASE", "loader", "a\x1b[2Jb")
	g.wants(0)
}

// shellInTerminal runs a shell script in a terminal of that size, for the length of the test.
func (s *server) shellInTerminal(width, height int, script string) *terminal {
	s.t.Helper()
	term := &terminal{t: s.t, socket: filepath.Join(s.t.TempDir(), "tmux")}
	file := term.socket + ".sh"
	if err := os.WriteFile(file, []byte("export SEMCTL_ADDR="+s.Addr+"\n"+script), 0o600); err != nil {
		s.t.Fatal(err)
	}
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "sh "+file)
	s.t.Cleanup(func() { term.tmux("kill-server") })
	return term
}

func TestTerminalShowsTheLineInPlaceAndTakesItAway(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.ACQUIRE", "loader", "CAPACITY", 1, "HOLDER", "pod-1", "LEASE", 3600000)
	term := s.shellInTerminal(70, 12, `semctl run --sem loader -- sh -c 'echo "the job"'; echo "ended with $?"; exec cat`)

	screen := term.await("place 1 of 1; held by pod-1")
	if got := len(strings.Split(strings.TrimSpace(screen), "\n")); got != 1 {
		t.Errorf("got %d lines, want one that is cut to the width:\n%s", got, screen)
	}
	term.await("…")
	s.do("SEM.RELEASE", "loader", "pod-1")

	screen = term.await("the job", "ended with 0")
	if strings.Contains(screen, "waiting") {
		t.Errorf("got this screen, want the line of the wait gone:\n%s", screen)
	}
}

func TestCommandHasTheTerminal(t *testing.T) {
	t.Parallel()
	s := start(t)
	term := s.shellInTerminal(80, 12, `semctl run --sem loader --capacity 1 -- sh -c 'trap "echo got INT; exit 4" INT
printf "name? "; read name; echo "hello $name"; while :; do sleep 0.02; done'; echo "ended with $?"; exec cat`)
	term.await("name?")
	term.enters("world")
	term.await("hello world")

	term.press("C-c")

	term.await("got INT", "ended with 4")
	s.free("loader")
}

// bash is a shell with job control in a terminal.
func (s *server) bash() *terminal {
	s.t.Helper()
	term := s.shellInTerminal(80, 24, "PS1='ready$ ' exec bash --norc -i")
	term.await("ready$")
	return term
}

// enters types a line.
func (term *terminal) enters(line string) {
	term.t.Helper()
	term.press(line, "Enter")
}

// backInShell checks that the shell has its terminal back, and that everything has been given back.
func (s *server) backInShell(term *terminal) {
	s.t.Helper()
	s.await("loader", "in_use", 0)
	term.enters("echo still-$((6*7))")
	term.await("still-42")
	s.free("loader")
}

func TestCommandIsStoppedAndContinuedFromItsTerminal(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "loader", "1")
	term := s.bash()
	term.enters("semctl run --sem loader --capacity 1 --lease 1h -- sh -c 'read a; echo one $a; read b; echo two $b'")
	s.await("loader", "in_use", 1)
	term.enters("x")
	term.await("one x")

	term.press("C-z")
	term.await("Stopped")
	term.enters("echo here-$((6*7))")
	term.await("here-42")
	term.enters("fg")
	term.await("fg")
	term.enters("y")

	term.await("two y")
	s.backInShell(term)
}

func TestCommandInTheBackgroundGetsTheTerminalWithTheShellsLeave(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "loader", "1")
	term := s.bash()
	term.enters("set -b; semctl run --sem loader --lease 1h -- sh -c 'read a; echo got $a' &")
	term.await("Stopped")

	term.enters("fg")
	term.await("fg")
	term.enters("x")

	term.await("got x")
	s.backInShell(term)
}
