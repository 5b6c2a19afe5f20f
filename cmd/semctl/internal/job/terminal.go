//go:build unix

package job

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the one in whose foreground we were started.
type terminal struct {
	fd  int
	own int // our process group
}

// ownTerminal returns the terminal behind a file if we are in its foreground, else nil.
func ownTerminal(fd uintptr) *terminal {
	group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
	if err != nil || group != syscall.Getpgrp() {
		return nil
	}
	return &terminal{fd: int(fd), own: group}
}

// foreground puts a process group there. Where it fails, the terminal is gone, and nobody reads from it.
func (t *terminal) foreground(group int) {
	// Whoever does this from the background would be stopped.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// StopWith stops this process if the terminal has stopped the command, so that the shell which we came
// from gets its terminal back. It reports whether there was something to stop. When we go on, or if
// nobody lets us stop, Continue is to be called.
func (j *Job) StopWith() bool {
	if !j.stopped || j.ended {
		return false
	}
	j.terminal.foreground(j.terminal.own)
	// As the terminal would have done, had it known all of us: also to who shares our group.
	_ = syscall.Kill(0, syscall.SIGTSTP)
	return true
}

// Continue lets a job go on that its terminal had stopped.
func (j *Job) Continue() {
	if !j.stopped {
		return
	}
	j.stopped = false
	if group, err := unix.IoctlGetInt(j.terminal.fd, unix.TIOCGPGRP); err == nil && group == j.terminal.own {
		j.terminal.foreground(j.group) // unless the shell has put us into the background
	}
	_ = j.Signal(syscall.SIGCONT) // it may have ended meanwhile
}

// takeBack puts us into the foreground where a job was, for whoever we share it with.
func (t *terminal) takeBack(from int) {
	if t == nil {
		return
	}
	if group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err == nil && group == from {
		t.foreground(t.own)
	}
}
