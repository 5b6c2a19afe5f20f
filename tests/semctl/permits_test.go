package semctl

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPermitIsTakenByOneProcessAndGivenBackByAnother(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "1")

	got := s.object(0, "acquire", "pool", "--holder", "w", "--lease", "20s", "--label", "a test", "--slots")

	if got["granted"] != true || got["holder"] != "w" || got["slot"] != 0.0 || got["lease_ms"] != 20000.0 || got["replayed"] != false {
		t.Errorf("got %v, want a grant of slot 0 to w for 20 s", got)
	}
	if slots := fmt.Sprint(got["slots"]); slots != "[[0 0]]" {
		t.Errorf("slots: got %s, want [[0 0]]", slots)
	}
	if again := s.object(0, "acquire", "pool", "--holder", "w"); again["token"] != got["token"] || again["replayed"] != true {
		t.Errorf("again: got %v, want the same token %v", again, got["token"])
	}
	token := strconv.FormatFloat(got["token"].(float64), 'f', 0, 64)
	s.ctl(0, "check", "pool", "w", token)
	s.ctl(0, "renew", "pool", "w", "--lease", "1m", "--token", token)
	s.ctl(0, "release", "pool", "w", "--token", token)
	if got := s.figure("pool", "in_use"); got != 0 {
		t.Errorf("in use: got %d, want 0", got)
	}
}

func TestWhatIsNotHeldEndsWithStatus1(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "1")
	s.ok("acquire", "pool", "--holder", "w")

	for _, args := range [][]string{
		{"release", "pool", "other"},
		{"release", "pool", "w", "--token", "1"},
		{"release", "nosuch", "w"},
		{"renew", "pool", "other"},
		{"check", "pool", "w", "1"},
		{"cancel", "pool", "w"},
	} {
		o := s.ctl(1, args...)
		if o.stdout != "" || !strings.HasPrefix(o.stderr, "semctl: ") || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: got %q and %q, want one line on stderr", args, o.stdout, o.stderr)
		}
		for key, value := range s.object(1, args...) {
			if value == true {
				t.Errorf("%q --json: got %s true, want nothing done", args, key)
			}
		}
	}
	if got := s.figure("pool", "in_use"); got != 1 {
		t.Errorf("in use: got %d, want 1", got)
	}
}

func TestNoPermitInTimeEndsWithStatus75(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("acquire", "pool", "--capacity", "1", "--holder", "w")

	s.ctl(75, "acquire", "pool")
	began := time.Now()
	got := s.object(75, "acquire", "pool", "--wait", "200ms")

	if got["granted"] != false {
		t.Errorf("got %v, want granted false", got)
	}
	if passed := time.Since(began); passed < 200*time.Millisecond {
		t.Errorf("it waited %v, want 200ms at least", passed)
	}
}

func TestWaitEndsWithTheRelease(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("acquire", "pool", "--capacity", "1", "--holder", "w")
	waiting := begin(t, s.command("acquire", "pool", "--wait", "1m", "--lease", "10s", "--holder", "next"))
	s.await("pool", "waiters", 1)

	s.ok("release", "pool", "w")

	o := waiting.end()
	if o.status != 0 || !strings.Contains(o.stdout, "next") {
		t.Fatalf("got %+v, want a grant to next", o)
	}
	// Whoever waited does not know how old its grant is.
	if got := s.figure("pool", "renewals"); got != 1 {
		t.Errorf("renewals after the wait: got %d, want 1", got)
	}
}

func TestInterruptedWaitLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("acquire", "pool", "--capacity", "1", "--holder", "w")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		waiting := begin(t, s.command("acquire", "pool", "--wait", "1m"))
		s.await("pool", "waiters", 1)

		_ = waiting.Process.Signal(signal)

		if o := waiting.end(); o.status != 130 || !strings.Contains(o.stderr, "interrupted") {
			t.Errorf("%v: got %+v, want exit status 130", signal, o)
		}
		s.await("pool", "waiters", 0)
	}
	s.ok("release", "pool", "w")
	s.ctl(0, "acquire", "pool")
}

// The signal and the grant meet in some of the rounds.
func TestGrantThatMeetsASignalIsGivenBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "1")
	for round := range 25 {
		s.do("SEM.ACQUIRE", "pool", "HOLDER", "w")
		waiting := begin(t, s.command("acquire", "pool", "--wait", "1m", "--lease", "1m", "--holder", "next"))
		s.await("pool", "waiters", 1)

		if round%2 == 0 {
			s.do("SEM.RELEASE", "pool", "w")
			_ = waiting.Process.Signal(syscall.SIGTERM)
		} else {
			_ = waiting.Process.Signal(syscall.SIGTERM)
			s.do("SEM.RELEASE", "pool", "w")
		}

		if waiting.end().status == 0 { // it was faster, and told of its grant
			s.do("SEM.RELEASE", "pool", "next")
		}
		s.await("pool", "in_use", 0)
		s.await("pool", "waiters", 0)
	}
}

func TestHolderThatHoldsOtherPermitsKeepsThem(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("acquire", "pool", "--capacity", "2", "--holder", "w", "--lease", "1m")
	s.do("SEM.ACQUIRE", "pool", "HOLDER", "other")

	o := s.ctl(1, "acquire", "pool", "--wait", "1m", "--holder", "w", "--permits", "2")

	if !strings.Contains(o.stderr, "CONFLICT") {
		t.Errorf("got %+v, want CONFLICT", o)
	}
	if got := s.figure("pool", "in_use"); got != 2 {
		t.Errorf("in use: got %d, want 2", got)
	}
}

func TestFreshFencesOffWhoUsedTheIdBefore(t *testing.T) {
	t.Parallel()
	s := start(t)
	before := s.object(0, "acquire", "pool", "--capacity", "1", "--holder", "w")

	after := s.object(0, "acquire", "pool", "--holder", "w", "--fresh")

	if after["token"].(float64) <= before["token"].(float64) || after["slot"] != before["slot"] || after["replayed"] != false {
		t.Errorf("got %v after %v, want a larger token in the same slot", after, before)
	}
}

func TestPersistStaysUntilItIsReleased(t *testing.T) {
	t.Parallel()
	s := start(t)

	got := s.object(0, "acquire", "pool", "--capacity", "1", "--holder", "reboot", "--persist")

	if got["lease_ms"] != -1.0 {
		t.Errorf("lease: got %v, want -1", got["lease_ms"])
	}
	if text := s.ok("holders", "pool"); !strings.Contains(text, "never") {
		t.Errorf("holders: got %q, want a lease that never ends", text)
	}
	s.ctl(64, "acquire", "pool", "--persist") // nobody could release it
	s.ctl(0, "release", "pool", "reboot")
}
