package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// answerIn is how much later than its own time a request is answered at the latest.
	answerIn = time.Second
	// slow is what a machine that has much else to do may add to that.
	slow = 4 * time.Second
)

// pending is a request that is not answered yet.
type pending struct {
	*client
	request string
	began   time.Time
	within  time.Duration // its own time: WAIT, or --hold
}

// ask sends a request on a connection of its own.
func (s *several) ask(i int, within time.Duration, args ...any) pending {
	s.Helper()
	p := pending{s.dial(i), fmt.Sprint(args...), time.Now(), within}
	p.send(args...)
	return p
}

// inTime reads the answer, which must not come before the request's own time is up, nor much later.
func (p pending) inTime() any {
	p.Helper()
	got := p.receive()
	if took := time.Since(p.began); took < p.within || took > p.within+answerIn+slow {
		p.Errorf("%s: answered %v after %v, want %v to %v", p.request, got, took, p.within, p.within+answerIn)
	}
	return got
}

// refusedIn reads an answer in time that must be an error of one of these codes.
func (p pending) refusedIn(codes ...string) {
	p.Helper()
	got := p.inTime()
	if refused, ok := got.(resp.Error); !ok || !slices.Contains(codes, refused.Code()) {
		p.Errorf("%s: got %v, want an error of %v", p.request, got, codes)
	}
}

// A node that has lost both others can decide nothing, and tells everybody so in time. It serves again
// when another node is back, also those who have stood in line all the while.
func TestNodeThatIsLeftAloneAnswersEverybodyInTime(t *testing.T) {
	for name, left := range map[string]func(s *several) int{
		"leader":   func(s *several) int { return s.leader() },
		"follower": func(s *several) int { return s.followers()[0] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const hold = 2 * time.Second
			s := form(t, "--hold", hold.String())
			s.answersAlone(left(s), hold)
		})
	}
}

func (s *several) answersAlone(left int, hold time.Duration) {
	const short, long = time.Second, 10 * time.Minute
	c := s.dial(left)
	c.want("OK", "SEM.CREATE", "door", 1)
	held := c.acquire("door", "HOLDER", "a", "LEASE", long.Milliseconds())
	stands := s.ask(left, long, "SEM.ACQUIRE", "door", "HOLDER", "stands", "WAIT", long.Milliseconds())
	joined(s.T, c, "door", 1)
	stood := s.ask(left, short, "SEM.ACQUIRE", "door", "HOLDER", "stood", "WAIT", short.Milliseconds())
	away := slices.DeleteFunc(s.running(), func(i int) bool { return i == left })
	for _, i := range away {
		s.kill(i)
	}
	s.leaderless(left)

	all := []pending{s.ask(left, short, "SEM.ACQUIRE", "door", "HOLDER", "c", "WAIT", short.Milliseconds())}
	for _, args := range [][]any{
		{"SEM.ACQUIRE", "door", "HOLDER", "b"}, {"SEM.ACQUIRE", "door", "WAIT", long.Milliseconds()},
		{"SEM.ACQUIRE", "new", "CAPACITY", 1}, {"SEM.RENEW", "door", "a"}, {"SEM.RELEASE", "door", "b"},
		{"SEM.CHECK", "door", "a", held.token}, {"SEM.CREATE", "window", 1}, {"SEM.CANCEL", "door", "b"}, {"SEM.RESIZE", "door", 1},
		{"SEM.RECONCILE", "door"}, {"SEM.DELETE", "window"}, {"SEM.INFO", "door"}, {"SEM.HOLDERS", "door"}, {"SEM.WAITERS", "door"}, {"SEM.SCAN", 0},
	} {
		all = append(all, s.ask(left, hold, args...))
	}
	if got := stood.inTime(); got != nil { // its time may have been up before the others were gone
		if e, ok := got.(resp.Error); !ok || e.Code() != "UNCERTAIN" {
			s.Errorf("%s: got %v, want UNCERTAIN", stood.request, got)
		}
	}
	for _, p := range all {
		p.refusedIn("CLUSTERDOWN")
	}
	c.want("PONG", "PING")

	s.start(away[0])
	c.want(1, "SEM.CHECK", "door", "a", held.token)
	c.want(1, "SEM.RELEASE", "door", "a", "TOKEN", held.token)
	if first := stands.granted(); first.token <= held.token {
		s.Errorf("got token %d after %d, want a larger one", first.token, held.token)
	}
	c.wantLine("door") // of those who were told that it is uncertain, nobody stays
}

// leaderless waits until a node knows that nobody leads.
func (s *several) leaderless(i int) {
	s.Helper()
	c := s.dial(i)
	trial.Await(s.T, func() error {
		if text := fmt.Sprint(c.do("INFO", "raft")); !strings.Contains(text, "raft_leader:\r\n") {
			return fmt.Errorf("node %d knows a leader: %s", i, text)
		}
		return nil
	})
}
