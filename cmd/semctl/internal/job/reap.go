//go:build unix

package job

import (
	"errors"
	"syscall"
)

// Reap takes note of what became of the job's processes since it was called last. It is to be called when
// SIGCHLD has come, and does no harm at other times.
func (j *Job) Reap() {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
		if pid == j.group {
			j.note(s)
		}
	}
}

func (j *Job) note(s syscall.WaitStatus) {
	switch {
	case s.Exited():
		j.status, j.ended = s.ExitStatus(), true
	case s.Signaled():
		j.status, j.ended = 128+int(s.Signal()), true
	case s.Stopped() && j.terminal != nil && byTerminal(s.StopSignal()):
		j.stopped = s.StopSignal()
	}
}

// byTerminal says whether a terminal stops processes by this signal.
func byTerminal(s syscall.Signal) bool {
	return s == syscall.SIGTSTP || s == syscall.SIGTTIN || s == syscall.SIGTTOU
}
