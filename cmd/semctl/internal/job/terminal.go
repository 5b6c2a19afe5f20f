//go:build unix

package job

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the one that we read from, and that can stop us.
type terminal struct {
	fd  int
	own int // our process group
}

// ownTerminal returns the terminal behind a file, nil if there is none.
func ownTerminal(fd uintptr) *terminal {
	if _, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err != nil {
		return nil
	}
	return &terminal{fd: int(fd), own: syscall.Getpgrp()}
}

// foreground puts a process group there. Where it fails, the terminal is gone, and nobody reads from it.
func (t *terminal) foreground(group int) {
	// Whoever does this from the background would be stopped.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// holder is the process group in the foreground; 0 where the terminal is gone.
func (t *terminal) holder() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// StopWith stops this process if the terminal has stopped the command, so that the shell which we came
// from gets its terminal back. It reports whether it asked for that: the stop may come a moment later. When
// we go on, or if nobody lets us stop, Continue is to be called.
func (j *Job) StopWith() bool {
	if j.stopped == 0 || j.ended {
		return false
	}
	if j.stopped != syscall.SIGTSTP && j.terminal.holder() == j.terminal.own {
		j.Continue() // it wanted the terminal while the shell had it; now the shell has given it to us
		return false
	}
	if j.terminal.holder() == j.group {
		j.terminal.foreground(j.terminal.own)
	}
	// As the terminal would have done, had it known all of us: also to who shares our group.
	_ = syscall.Kill(0, syscall.SIGTSTP)
	return true
}

// Continue lets a job go on that its terminal had stopped.
func (j *Job) Continue() {
	if j.stopped == 0 {
		return
	}
	j.stopped = 0
	if j.terminal.holder() == j.terminal.own {
		j.terminal.foreground(j.group) // unless the shell has put us into the background
	}
	_ = j.Signal(syscall.SIGCONT) // it may have ended meanwhile
}

// takeBack puts us into the foreground where a job was, for whoever we share it with.
func (t *terminal) takeBack(from int) {
	if t != nil && t.holder() == from {
		t.foreground(t.own)
	}
}
