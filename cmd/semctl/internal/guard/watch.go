//go:build unix

package guard

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/cmd/semctl/internal/job"
)

const (
	// glance is how often everything is looked at, whatever happens: timers stand still in suspend.
	glance = 100 * time.Millisecond
	// ghosts is how long processes that were killed may take to vanish.
	ghosts = 2 * time.Second
	// stopping is how long it may take until we are stopped, once that was asked for.
	stopping = time.Second
)

// watch sees a command to its end.
type watch struct {
	*Guard
	permit   *client.Permit
	job      *job.Job
	signals  <-chan os.Signal
	deadline deadline

	done    step      // what the permit has asked for so far
	blamed  bool      // the command was ended because of the permit
	seen    bool      // that the permit is lost
	halted  time.Time // when the terminal had stopped the command, and we asked to be stopped too
	left    time.Time // when the command had ended, leaving others in its group
	killing time.Time // when those were killed
}

// run returns the status to exit with, once nothing of the command runs any more.
func (w *watch) run() int {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case s := <-w.signals:
			w.signal(s.(syscall.Signal))
		case <-w.lost():
		case <-timer.C:
			if time.Since(w.halted) > stopping {
				w.proceed() // nobody has let us stop
			}
		}
		w.job.Reap()
		if w.over() {
			return w.status()
		}
		wait := w.heed()
		if w.halted.IsZero() && w.job.StopWith() {
			w.halted = time.Now()
		}
		timer.Reset(min(wait, glance))
	}
}

// lost is closed when the permit is lost, until that has been seen.
func (w *watch) lost() <-chan struct{} {
	if w.seen {
		return nil
	}
	return w.permit.Context().Done()
}

// signal passes a signal on to the command and all that it has started.
func (w *watch) signal(s syscall.Signal) {
	switch {
	case s == syscall.SIGCONT:
		w.proceed()
	case slices.Contains(passedOn(), s):
		w.send(s)
	}
}

// send tells of a failure, and goes on: the next thing to do is the same.
func (w *watch) send(s syscall.Signal) {
	if err := w.job.Signal(s); err != nil {
		w.Report.say(event{Event: "failed", Error: err.Error()}, "%v", err)
	}
}

// proceed lets the command go on when we do.
func (w *watch) proceed() {
	if !w.halted.IsZero() {
		w.halted = time.Time{}
		w.job.Continue()
	}
}

// heed acts on the state of the permit, and returns when to look again.
func (w *watch) heed() time.Duration {
	if !w.permit.Guarded() || w.done == kill {
		return glance
	}
	lost := w.permit.Err()
	next, wait := w.deadline.look(time.Now(), w.permit.Left(), lost)
	w.seen = lost != nil
	if next > w.done && w.OnLost != Ignore && (w.OnLost == Kill || w.done == goOn) {
		w.act(next, lost)
	}
	if next == goOn && w.done == ask {
		w.done, w.blamed = goOn, false // it was renewed in the end
	}
	var reason *client.LostError
	if errors.As(lost, &reason) {
		w.Report.lost(reason)
	}
	return wait
}

// act ends the command, or asks it to end.
func (w *watch) act(next step, lost error) {
	w.done, w.blamed = next, w.OnLost == Kill
	if next == kill && w.OnLost == Kill {
		w.send(syscall.SIGKILL)
		return
	}
	w.send(w.Signal)
	w.send(syscall.SIGCONT) // who is stopped cannot heed it
	if lost == nil {
		w.Report.ending(w.permit)
	}
}

// over says whether nothing is left of the command. What it has left running in its group is ended first.
func (w *watch) over() bool {
	if _, ended := w.job.Ended(); !ended {
		return false
	}
	if !w.job.Running() {
		return true
	}
	now := time.Now()
	switch {
	case w.left.IsZero():
		w.left = now
		w.send(w.Signal)
		w.send(syscall.SIGCONT)
	case w.killing.IsZero() && now.Sub(w.left) >= w.leftoverGrace():
		w.killing = now
		w.send(syscall.SIGKILL)
	case !w.killing.IsZero() && now.Sub(w.killing) >= ghosts:
		return true // they have ended, but nobody takes note of it
	}
	return false
}

// leftoverGrace is what those get whom the command has left behind, also without a lease.
func (w *watch) leftoverGrace() time.Duration { return min(w.deadline.grace, maxGrace) }

func (w *watch) status() int {
	if w.blamed {
		return StatusLost
	}
	status, _ := w.job.Ended()
	return status
}
