package tests

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// moveEvery is how often leadership moves, and moveFor how long that goes on.
	moveEvery = 2 * time.Second
	moveFor   = 15 * time.Second
	// fewestMoves must have been made, and fewestRounds been played: a slow machine makes fewer.
	fewestMoves, fewestRounds = 2, 3
)

// errUncertain is the only error that a client may see while leadership moves: the outcome is open, and
// it has been told so.
var errUncertain = errors.New("the outcome of a request is uncertain")

// TestContractWhileLeadershipMoves goes through what the commands promise again and again, with clients
// at all nodes, while leadership moves. An answer that is not the right one is an error; so is CLUSTERDOWN,
// since requests are held for as long as it takes.
func TestContractWhileLeadershipMoves(t *testing.T) {
	t.Parallel()
	s := form(t)
	ended, moves := make(chan struct{}), make(chan int, 1)
	go func() { moves <- s.moveLeadership(ended) }()

	rounds, uncertain, longest := 0, 0, time.Duration(0)
	for began := time.Now(); time.Since(began) < moveFor; rounds++ {
		r := &round{several: s, key: fmt.Sprint("round ", rounds), number: rounds}
		err := r.play()
		longest = max(longest, r.longest)
		if errors.Is(err, errUncertain) {
			uncertain++
		} else if err != nil {
			t.Error(err)
			break
		}
	}
	close(ended)
	moved := <-moves
	t.Logf("%d rounds, %d of them uncertain, while leadership moved %d times; the longest request took %v", rounds, uncertain, moved, longest)
	if moved < fewestMoves || rounds-uncertain < fewestRounds {
		t.Errorf("got %d moves and %d whole rounds, want at least %d and %d", moved, rounds-uncertain, fewestMoves, fewestRounds)
	}
}

// moveLeadership asks one node after the other for it, until it is told to stop, and returns how often it was
// done.
func (s *several) moveLeadership(stop <-chan struct{}) (moved int) {
	tick := time.NewTicker(moveEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return moved
		case <-tick.C:
		}
		c, err := resp.Dial(s.members[i%len(s.members)].addr)
		if err != nil {
			s.Errorf("transfer: %v", err)
			return moved
		}
		reply, err := c.Do("SEM.NODE", "TRANSFER")
		_ = c.Close()
		switch _, refused := reply.(resp.Error); {
		case err != nil:
			s.Errorf("transfer: %v", err)
			return moved
		case refused:
			s.Logf("transfer: %v", reply)
		default:
			moved++
		}
	}
}

// round is one way through the commands, on a semaphore of its own.
type round struct {
	*several
	key     string
	number  int
	longest time.Duration
}

// at is the node that the next client goes to.
func (r *round) at(i int) *client { return r.dial((r.number + i) % len(r.members)) }

// ask carries out a command on the semaphore.
func (r *round) ask(c *client, command string, args ...any) (any, error) {
	began := time.Now()
	reply, err := c.Do(append([]any{command, r.key}, args...)...)
	r.longest = max(r.longest, time.Since(began))
	if e, ok := reply.(resp.Error); ok && e.Code() == "UNCERTAIN" {
		return nil, errUncertain
	}
	return reply, err
}

// step is a command and what it must be answered.
type step struct {
	want any
	args []any
}

// steps carries out commands in turn.
func (r *round) steps(c *client, steps ...step) error {
	for _, s := range steps {
		got, err := r.ask(c, s.args[0].(string), s.args[1:]...)
		if err != nil {
			return fmt.Errorf("%s: %v: %w", r.key, s.args, err)
		}
		if e, ok := got.(resp.Error); ok {
			got = e.Code()
		}
		if fmt.Sprint(got) != fmt.Sprint(s.want) {
			return fmt.Errorf("%s: %v: got %v, want %v", r.key, s.args, got, s.want)
		}
	}
	return nil
}

// granted acquires.
func (r *round) granted(c *client, args ...any) (grant, error) {
	reply, err := r.ask(c, "SEM.ACQUIRE", args...)
	if err != nil {
		return grant{}, fmt.Errorf("%s: acquire %v: %w", r.key, args, err)
	}
	g, err := asGrant(reply)
	if err != nil {
		return grant{}, fmt.Errorf("%s: acquire %v: %w", r.key, args, err)
	}
	return g, nil
}

func (r *round) play() error {
	a, b, c := r.at(0), r.at(1), r.at(2)
	defer func() { _, _, _ = a.Close(), b.Close(), c.Close() }()
	if err := r.steps(a, step{"OK", []any{"SEM.CREATE", 2, "LEASE", 600_000}}); err != nil {
		return err
	}
	first, err := r.granted(a, "HOLDER", "a")
	if err != nil {
		return err
	}
	again, err := r.granted(b, "HOLDER", "a")
	if err != nil {
		return err
	}
	if again.token != first.token || again.slot != first.slot || !again.replayed {
		return fmt.Errorf("%s: got %+v through another node, want %+v again", r.key, again, first)
	}
	err = r.steps(b,
		step{"OK", []any{"SEM.CREATE", 2}}, step{"CONFLICT", []any{"SEM.CREATE", 3}},
		step{"CONFLICT", []any{"SEM.ACQUIRE", "HOLDER", "a", "PERMITS", 2}}, step{"TOOMANY", []any{"SEM.ACQUIRE", "PERMITS", 3}},
		step{nil, []any{"SEM.ACQUIRE", "HOLDER", "b", "PERMITS", 2}}, step{nil, []any{"SEM.ACQUIRE", "HOLDER", "b", "PERMITS", 2, "WAIT", 50}},
		step{1, []any{"SEM.CHECK", "a", first.token}}, step{0, []any{"SEM.CHECK", "a", first.token + 1}},
		step{700_000, []any{"SEM.RENEW", "a", "LEASE", 700_000, "TOKEN", first.token}}, step{0, []any{"SEM.RENEW", "nobody"}},
		step{0, []any{"SEM.RECONCILE"}}, step{"INUSE", []any{"SEM.DELETE"}}, step{"[1 1 0]", []any{"SEM.RESIZE", 1}},
	)
	if err != nil {
		return err
	}
	return r.wait(a, b, c, first)
}

// wait lets one stand in line at another node than the holder, who releases at a third.
func (r *round) wait(a, b, c *client, first grant) error {
	b.send("SEM.ACQUIRE", r.key, "HOLDER", "waits", "WAIT", 600_000)
	if err := r.inLine(c, 1); err != nil {
		return err
	}
	a.send("SEM.ACQUIRE", r.key, "HOLDER", "leaves", "WAIT", 600_000)
	if err := r.inLine(c, 2); err != nil {
		return err
	}
	err := r.steps(c,
		step{1, []any{"SEM.CANCEL", "leaves"}}, step{0, []any{"SEM.CANCEL", "leaves"}},
		step{1, []any{"SEM.RELEASE", "a", "TOKEN", first.token}}, step{0, []any{"SEM.RELEASE", "a"}},
	)
	if err != nil {
		return err
	}
	if left, err := a.Receive(patience); err != nil || left != nil {
		return fmt.Errorf("%s: got %v and %v for who left the line, want null", r.key, left, err)
	}
	reply, err := b.Receive(patience)
	if err != nil {
		return fmt.Errorf("%s: who waits: %w", r.key, err)
	}
	second, err := asGrant(reply)
	if err != nil {
		return fmt.Errorf("%s: who waits: %w", r.key, err)
	}
	if second.token <= first.token || second.slot != first.slot {
		return fmt.Errorf("%s: got %+v after %+v, want a larger token in its slot", r.key, second, first)
	}
	return r.steps(a,
		step{0, []any{"SEM.CHECK", "a", first.token}}, step{1, []any{"SEM.CHECK", "waits", second.token}},
		step{1, []any{"SEM.RELEASE", "waits"}}, step{1, []any{"SEM.DELETE"}}, step{"NOSEM", []any{"SEM.INFO"}}, step{0, []any{"SEM.DELETE"}},
	)
}

// inLine waits until so many stand in line.
func (r *round) inLine(c *client, n int) error {
	for deadline := time.Now().Add(patience); ; {
		page, err := r.ask(c, "SEM.WAITERS")
		if err != nil {
			return err
		}
		parts, ok := page.([]any)
		if !ok || len(parts) != 2 {
			return fmt.Errorf("%s: SEM.WAITERS: got %v, want a page", r.key, page)
		}
		if line, _ := parts[1].([]any); len(line) == n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: got the line %v, want %d in it", r.key, parts[1], n)
		}
	}
}
