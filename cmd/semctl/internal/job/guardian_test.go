//go:build unix

package job

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// group starts a process in a group of its own.
func group(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGuardianKillsTheGroupWhenItsInputEnds(t *testing.T) {
	c := group(t)
	Guard(strings.NewReader(fmt.Sprintln(c.Process.Pid)))
	_ = c.Wait() // the state tells
	if s := c.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		t.Errorf("got %v, want it killed", c.ProcessState)
	}
}

func TestGuardianThatIsDismissedOrToldNothingKillsNobody(t *testing.T) {
	c := group(t)
	pid := c.Process.Pid
	for _, in := range []string{fmt.Sprintf("%d\ndone\n", pid), "", "x\n", "1\n", "0\n", "-1\n", fmt.Sprintf("-%d\n", pid)} {
		Guard(strings.NewReader(in))
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("got %v, want it to run", err)
	}
}

func TestCommandsAreFoundAsAShellDoes(t *testing.T) {
	for name, want := range map[string]int{
		"sh": 0, "nosuchcommand": StatusNotFound, "/nosuch/file": StatusNotFound, "/": StatusNotExecutable, "": StatusNotFound,
	} {
		path, got, err := Find(name)
		if got != want || (err == nil) != (want == 0) || want == 0 && !strings.HasSuffix(path, "/sh") {
			t.Errorf("%q: got %q, status %d and %v; want status %d", name, path, got, err, want)
		}
	}
}

func TestCommandIsNotStartedWhereItMayNotBeAnyMore(t *testing.T) {
	gone := errors.New("gone")
	file := filepath.Join(t.TempDir(), "ran")
	path, _, err := Find("touch")
	if err != nil {
		t.Fatal(err)
	}

	j, err := Start(Command{Path: path, Args: []string{"touch", file}, Ready: func() error { return gone }})

	if j != nil || !errors.Is(err, gone) {
		t.Errorf("got %v, %v, want %v", j, err, gone)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it ran")
	}
}
