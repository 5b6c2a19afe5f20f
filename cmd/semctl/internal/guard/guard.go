//go:build unix

package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/cmd/semctl/internal/job"
)

// StatusLost is the exit status when the command was ended because of its permit.
const StatusLost = 76

// Guard is a command and what guards it.
type Guard struct {
	Name    string // the semaphore
	Client  *client.Client
	Request []client.Option
	Wait    time.Duration // as in Request, for the display

	Command job.Command
	OnLost  OnLost
	Signal  syscall.Signal // what asks the command to end
	Grace   time.Duration  // how long it is given for that; 0: a sixth of its lease, at most 10 s

	Look   Look // nil: nothing is shown of the line
	Report *Report
}

// Run waits for a permit, runs the command with it, and gives it back. It returns the command's exit
// status, or 128 and the number of a signal that came before the command ran, or StatusLost; or the error
// that Acquire ended with.
func (g *Guard) Run() (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := listen()
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil) // not before the permit is given back: its context is made from this one

	p, err := g.acquire(ctx, cancel, signals)
	var interrupted *interruption
	switch {
	case errors.As(err, &interrupted):
		return 128 + int(interrupted.signal), nil
	case err != nil:
		return 0, err
	}
	status := g.work(p, signals)
	g.giveBackUnless(p, signals)
	return status, nil
}

// giveBackUnless gives the permit back, until one more signal says that we have tried for long enough.
func (g *Guard) giveBackUnless(p *client.Permit, signals <-chan os.Signal) {
	for len(signals) > 0 { // those were for the command
		<-signals
	}
	given := make(chan error, 1)
	go func() { given <- p.Release() }() // it ends by itself, or with the process
	for {
		select {
		case err := <-given:
			g.given(p, err)
			return
		case s := <-signals:
			if ends(s) {
				g.Report.say(event{Event: "unreleased", Error: s.String()}, "%v: not given back; the permit comes back when its lease ends", s)
				return
			}
		}
	}
}

// work runs the command to its end.
func (g *Guard) work(p *client.Permit, signals <-chan os.Signal) int {
	c := g.Command
	c.Env = append(withoutPermit(c.Env), permitVariables(p)...)
	if p.Guarded() {
		c.Ready = p.Err
	}
	j, err := job.Start(c)
	var lost *client.LostError
	switch {
	case errors.As(err, &lost):
		g.Report.lost(lost)
		return StatusLost
	case err != nil:
		g.Report.say(event{Event: "failed", Error: err.Error()}, "%v", err)
		return job.StatusNotExecutable
	}
	defer j.Close()
	g.Report.started(p, j.PID())
	w := &watch{Guard: g, permit: p, job: j, signals: signals, deadline: newDeadline(p.Left(), g.Grace)}
	status := w.run()
	g.Report.say(event{Event: "ended", Status: &status}, "")
	return status
}

func (g *Guard) giveBack(p *client.Permit) { g.given(p, p.Release()) }

// given tells how a Release went.
func (g *Guard) given(p *client.Permit, err error) {
	var lost *client.LostError
	switch {
	case !p.Guarded():
	case err == nil:
		g.Report.say(event{Event: "released"}, "")
	case errors.As(err, &lost):
		g.Report.lost(lost)
	default:
		g.Report.say(event{Event: "unreleased", Error: err.Error()}, "%v; it comes back when its lease ends", err)
	}
}

// Keep waits for a permit and leaves it to whoever is told its holder and token.
func (g *Guard) Keep() (*client.Permit, int, error) {
	signals := listen()
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	p, err := g.acquire(ctx, cancel, signals)
	var interrupted *interruption
	switch {
	case errors.As(err, &interrupted):
		return nil, 128 + int(interrupted.signal), nil
	case err != nil:
		return nil, 0, err
	}
	return p, 0, p.Detach()
}

// interruption is a signal that came while we stood in line.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return i.signal.String() }

// passedOn are the signals that belong to the command. The first four end a wait.
func passedOn() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGALRM,
	}
}

// listen catches what is passed on, unless the parent has set it to be ignored, as nohup does.
func listen() chan os.Signal {
	signals := make(chan os.Signal, 64)
	for _, s := range passedOn() {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	// To write to a stderr that nobody reads must not end us: there is a permit to give back.
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGPIPE)
	return signals
}

// withoutPermit leaves out what an outer semctl said of its own permit.
func withoutPermit(env []string) []string {
	var rest []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "SEM_NAME", "SEM_HOLDER", "SEM_TOKEN", "SEM_SLOT", "SEM_SLOTS":
		default:
			rest = append(rest, v)
		}
	}
	return rest
}

// permitVariables are what a command is told of its permit: of one that guards nothing, only the name.
func permitVariables(p *client.Permit) []string {
	vars := []string{"SEM_NAME=" + p.Name()}
	if !p.Guarded() {
		return vars
	}
	return append(vars,
		"SEM_HOLDER="+p.Holder(),
		fmt.Sprintf("SEM_TOKEN=%d", p.Token()),
		fmt.Sprintf("SEM_SLOT=%d", p.Slot()),
		"SEM_SLOTS="+SlotList(p.Slots()),
	)
}

// SlotList writes slots as 0,2-4.
func SlotList(slots []client.Slots) string {
	var runs []string
	for _, s := range slots {
		if s.First == s.Last {
			runs = append(runs, fmt.Sprint(s.First))
			continue
		}
		runs = append(runs, fmt.Sprintf("%d-%d", s.First, s.Last))
	}
	return strings.Join(runs, ",")
}
