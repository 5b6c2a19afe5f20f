package semctl

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/semserver/semserver/internal/trial"
)

// terminal is a tmux session of its own, with one program in it.
type terminal struct {
	t      *testing.T
	socket string
}

// inTerminal runs semctl in a terminal of that size, for the length of the test.
func (s *server) inTerminal(width, height int, args ...string) *terminal {
	s.t.Helper()
	term := &terminal{s.t, s.t.TempDir() + "/tmux"}
	// The shell stays when semctl has ended, so that its last words can be read.
	script := fmt.Sprintf(`sh -c 'echo $$ >%s.pid; SEMCTL_ADDR=%s exec %s %s'; echo "ended with $?"; exec cat`,
		term.socket, s.Addr, semctl, strings.Join(args, " "))
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), script)
	s.t.Cleanup(func() { term.tmux("kill-server") })
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	c := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...)
	c.Env = environment("TERM=xterm-256color", "LC_ALL=C.UTF-8")
	out, err := c.CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// pid is the process of semctl.
func (term *terminal) pid() int {
	term.t.Helper()
	text, err := os.ReadFile(term.socket + ".pid")
	if err != nil {
		term.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		term.t.Fatal(err)
	}
	return pid
}

// press sends keys, by tmux's names.
func (term *terminal) press(keys ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, keys...)...)
}

// await waits until the screen shows all of these, and returns it.
func (term *terminal) await(texts ...string) string {
	term.t.Helper()
	var screen string
	trial.Await(term.t, func() error {
		screen = term.tmux("capture-pane", "-p")
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return fmt.Errorf("got this screen, want %q on it:\n%s", text, screen)
			}
		}
		return nil
	})
	return screen
}

// lineOf is the first line of a screen that contains a text.
func lineOf(screen, text string) string {
	for line := range strings.Lines(screen) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestTopShowsSemaphoresHoldersAndTheLine(t *testing.T) {
	t.Parallel()
	s := start(t, "--node-id", "alpha")
	s.ok("create", "quiet", "10")
	s.ok("acquire", "busy", "--capacity", "2", "--holder", "pod-1", "--lease", "1h", "--label", "first-pod")
	s.ok("acquire", "busy", "--holder", "pod-2", "--lease", "1h")
	waiting := begin(t, s.command("acquire", "busy", "--holder", "pod-3", "--wait", "1m", "--lease", "1h"))
	s.await("busy", "waiters", 1)

	top := s.inTerminal(100, 24, "top", "--interval", "100ms")

	screen := top.await("alpha leader", "busy", "2/2", "0/10", "2 semaphores, 2 permits held, 1 waiting")
	if strings.Index(screen, "busy") > strings.Index(screen, "quiet") {
		t.Errorf("got this screen, want busy above quiet:\n%s", screen)
	}
	if line := lineOf(screen, "busy"); !strings.Contains(line, "████████████ 2/2") {
		t.Errorf("got %q, want a full bar", line)
	}
	top.press("Enter")
	top.await("HOLDER (2)", "pod-1", "first-pod", "pod-2", "WAITER (1)", "pod-3")

	// The selected holder loses its permit only after a yes, and the next in line gets it.
	top.press("x")
	top.await("Release what pod-1 holds of busy?")
	top.press("n")
	top.await("nothing was done", "pod-1")
	top.press("x")
	top.await("[y/N]")
	top.press("y")
	top.await("released pod-1", "Nobody waits.")
	if o := waiting.end(); o.status != 0 {
		t.Errorf("the next in line: got %+v, want a grant", o)
	}

	top.press("Escape")
	top.await("SEMAPHORE", "quiet")
	top.press("q")
	top.await("ended with 0")
}

func TestTopSortsAndFilters(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{"alpha", "beta", "gamma"} {
		s.ok("create", name, "4")
	}
	s.ok("acquire", "gamma", "--permits", "3", "--lease", "1h")
	s.ok("acquire", "alpha", "--permits", "1", "--lease", "1h")
	top := s.inTerminal(100, 24, "top", "--interval", "100ms")
	order := func(screen string, names ...string) {
		t.Helper()
		for i := 1; i < len(names); i++ {
			if strings.Index(screen, names[i-1]) > strings.Index(screen, names[i]) {
				t.Errorf("got this screen, want the order %q:\n%s", names, screen)
			}
		}
	}

	order(top.await("3/4", "sort (use)"), "gamma", "alpha", "beta")
	top.press("n")
	order(top.await("sort (name)"), "alpha", "beta", "gamma")
	top.press("r", "/", "a", "m", "m")
	screen := top.await("filter: amm_", "gamma")
	if strings.Contains(screen, "alpha") {
		t.Errorf("got this screen, want no alpha:\n%s", screen)
	}
	top.press("Escape")
	order(top.await("alpha", "beta", "gamma"), "gamma", "beta", "alpha")
	top.press("?")
	top.await("Keys", "GRANTS/S")
	top.press("C-c")
	top.await("ended with 0")
}

func TestTopSaysWhatIsOldWhileTheServerIsAwayAndGoesOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "4")
	top := s.inTerminal(100, 24, "top", "--interval", "100ms", "--timeout", "300ms")
	top.await("pool")

	s.Kill()

	top.await("as of", "no server answers", "pool")
	s.restart()
	s.ok("create", "later", "1")
	screen := top.await("later")
	if strings.Contains(screen, "as of") {
		top.await("later", "2 semaphores")
	}
	top.tmux("resize-window", "-x", "60", "-y", "10")
	top.await("pool", "q: quit")
	top.press("q")
	top.await("ended with 0")
}

func TestTopEndsWithASignal(t *testing.T) {
	t.Parallel()
	s := start(t)
	top := s.inTerminal(100, 24, "top")
	top.await("no semaphores")

	process, err := os.FindProcess(top.pid())
	if err == nil {
		err = process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		t.Fatal(err)
	}

	top.await("ended with 130")
}

func TestQuestionsAreAskedOnATerminal(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "2")
	for _, c := range []struct {
		answer       []string
		says, status string
	}{
		{[]string{"Enter"}, "nothing was done", "64"},
		{[]string{"n", "Enter"}, "nothing was done", "64"},
		{[]string{"C-c"}, "interrupted", "130"},
		{[]string{"y", "Enter"}, "deleted", "0"},
	} {
		term := s.inTerminal(100, 24, "delete", "pool")
		term.await("delete pool, of which 0 of 2 permits are held and for which 0 wait? [y/N]")
		term.press(c.answer...)
		term.await(c.says, "ended with "+c.status)
	}
	s.ctl(1, "info", "pool")
}
