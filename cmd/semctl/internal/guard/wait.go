//go:build unix

package guard

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/semserver/semserver/client"
)

// acquire stands in line until there is a permit, or none, or a signal asks for an end.
func (g *Guard) acquire(ctx context.Context, cancel context.CancelCauseFunc, signals <-chan os.Signal) (*client.Permit, error) {
	var serving sync.WaitGroup
	defer serving.Wait()
	looking, stop := context.WithCancel(ctx)
	defer stop()

	type answer struct {
		permit *client.Permit
		err    error
	}
	answered := make(chan answer, 1)
	holder := make(chan string, 1)
	options := append(slices.Clone(g.Request), client.Announce(func(id string) { holder <- id }))
	serving.Go(func() {
		p, err := g.Client.Acquire(ctx, g.Name, options...)
		answered <- answer{p, err}
	})
	lines := make(chan line)
	if g.Look != nil {
		serving.Go(func() { g.follow(looking, holder, lines) })
	}

	began := time.Now()
	for {
		select {
		case s := <-signals:
			if ends(s) {
				cancel(&interruption{s.(syscall.Signal)})
			}
		case l := <-lines:
			l.waited, l.wait = time.Since(began), g.Wait
			g.Report.line(l)
		case a := <-answered:
			stop()
			g.Report.clear()
			return g.settle(ctx, a.permit, a.err)
		}
	}
}

// settle looks at the answer once more where a signal has come: what was granted in that moment is given
// back.
func (g *Guard) settle(ctx context.Context, p *client.Permit, err error) (*client.Permit, error) {
	var interrupted *interruption
	if err != nil || !errors.As(context.Cause(ctx), &interrupted) {
		return p, err
	}
	g.giveBack(p)
	return nil, interrupted
}

// ends says whether a signal ends a wait.
func ends(s os.Signal) bool {
	number, ok := s.(syscall.Signal)
	return ok && slices.Contains(passedOn()[:4], number)
}

// firstLook is when the line is looked at first: who gets a permit at once is not bothered.
const firstLook = 300 * time.Millisecond

// follow looks at the line from time to time and tells what it sees, once it is known who stands there:
// a request that cannot be made never has a holder.
func (g *Guard) follow(ctx context.Context, announced <-chan string, lines chan<- line) {
	var holder string
	select {
	case holder = <-announced:
	case <-ctx.Done():
		return
	}
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	pause := g.Report.pause()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		l, err := g.Look(ctx, g.Name, holder)
		if err == nil && l.found() {
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
		timer.Reset(pause.next())
	}
}
