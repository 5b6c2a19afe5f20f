//go:build unix

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
)

// Command is what is to be run.
type Command struct {
	Path   string // as Find returned it
	Args   []string
	Env    []string
	Stdin  uintptr
	Stdout uintptr
	Stderr uintptr
	// Guardian is a program that calls Guard on its input; it kills the job if we are killed. None: the
	// kernel kills the command itself, where it can.
	Guardian []string
	// Ready is asked directly before the command is started; its error keeps it from that. Nil: it is.
	Ready func() error
}

// Statuses of a command that could not be run, as shells have them.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// Find looks a command up as a shell does. The status says what is wrong with one that cannot be run.
func Find(name string) (path string, status int, err error) {
	path, err = exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrDot):
		return "", StatusNotFound, err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", StatusNotExecutable, err
	case err != nil:
		return "", StatusNotFound, err
	}
	return path, 0, nil
}

// Job is a command that was started, and all that it started in its process group. It belongs to one
// goroutine.
type Job struct {
	group    int // the command's process, and the group that it leads
	terminal *terminal
	guardian *guardian
	ended    bool
	status   int
	stopped  syscall.Signal // by which its terminal has stopped it; 0: it has not
}

// Start runs a command. The calling goroutine must be locked to its thread until the job is over, for
// when that thread ends, the kernel takes it for the death of the parent.
func Start(c Command) (*Job, error) {
	adoptOrphans()
	attributes := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attributes)
	tty := ownTerminal(c.Stdin)
	// Where the output goes to somebody else, as in a pipeline, that one may want the terminal; the command
	// gets it when it reads from it.
	if tty != nil && tty.holder() == tty.own && ownTerminal(c.Stdout) != nil {
		attributes.Foreground, attributes.Ctty = true, int(c.Stdin)
	}
	// Without a guardian there is still what dieWithParent does.
	g, _ := summon(c.Guardian)
	if c.Ready != nil {
		if err := c.Ready(); err != nil {
			g.dismiss()
			return nil, fmt.Errorf("not started: %w", err)
		}
	}
	pid, err := syscall.ForkExec(c.Path, c.Args, &syscall.ProcAttr{
		Env: c.Env, Files: []uintptr{c.Stdin, c.Stdout, c.Stderr}, Sys: attributes,
	})
	if err != nil {
		g.dismiss()
		return nil, fmt.Errorf("run %s: %w", c.Path, err)
	}
	g.watch(pid)
	return &Job{group: pid, terminal: tty, guardian: g}, nil
}

// Signal sends a signal to every process of the job. That none is left is no error.
func (j *Job) Signal(s syscall.Signal) error {
	err := syscall.Kill(-j.group, s)
	if err != nil && !errors.Is(err, syscall.ESRCH) && !j.isGhost(err) {
		return fmt.Errorf("send %v: %w", s, err)
	}
	return nil
}

// isGhost says that only processes are left that have ended: some systems refuse to signal those.
func (j *Job) isGhost(err error) bool { return j.ended && errors.Is(err, syscall.EPERM) }

// Ended says whether the command itself has ended, and with which status: its own, or 128 and the
// number of the signal that killed it.
func (j *Job) Ended() (status int, ended bool) { return j.status, j.ended }

// Running says whether any process of the group is left.
func (j *Job) Running() bool {
	return !j.ended || syscall.Kill(-j.group, 0) == nil
}

// Close lets go of a job that is over: the guardian ends, and the terminal is ours again.
func (j *Job) Close() {
	j.guardian.dismiss()
	j.terminal.takeBack(j.group)
}

// PID is the process of the command.
func (j *Job) PID() int { return j.group }
