package link

import (
	"fmt"
	"testing"

	"github.com/semserver/semserver/tests/redisd"
)

func TestASessionHasAConnectionOfItsOwn(t *testing.T) {
	server, l := single1(t)
	s, err := l.Session(t.Context(), "n")
	must(t, err)
	defer s.Close()
	do := func(args ...any) any {
		t.Helper()
		reply, err := s.Do(t.Context(), args...)
		must(t, err)
		return reply
	}
	for _, touched := range []bool{false, true} {
		do("WATCH", "n")
		if touched {
			must(t, call(t, l, increment("n")).err)
		}
		do("MULTI")
		do("EVALSHA", add.SHA, 1, "n", 10)
		if got := do("EXEC"); (got == nil) != touched {
			t.Errorf("with the key touched (%v): got %v, want it aborted then alone", touched, got)
		}
	}
	if got, _ := server.Do("GET", "n"); got != "11" {
		t.Errorf("got %v, want 11", got)
	}
}

func TestASessionSaysWhatBecameOfACommand(t *testing.T) {
	server, l := single1(t)
	s, err := l.Session(t.Context(), "n")
	must(t, err)
	defer s.Close()
	must(t, call(t, l, increment("n")).err)
	if _, err := s.Do(t.Context(), "RPUSH", "n", 1); code(err) != "WRONGTYPE" {
		t.Errorf("a key of another type: got %v, want WRONGTYPE", err)
	}
	if _, err := s.Do(t.Context(), "NONSENSE"); code(err) != "BACKEND" {
		t.Errorf("a command that is none: got %v, want BACKEND", err)
	}

	must(t, server.Pause())
	if _, err := s.Do(t.Context(), "INCR", "n"); code(err) != "unknown" {
		t.Errorf("no reply: got %v, want it unknown", err)
	}
	if _, err := s.Do(t.Context(), "INCR", "n"); code(err) != "CLUSTERDOWN" {
		t.Errorf("after that: got %v, want CLUSTERDOWN: it was not sent", err)
	}
	server.Kill()
	if _, err := l.Session(t.Context(), "n"); code(err) != "CLUSTERDOWN" {
		t.Errorf("without a server: got %v, want CLUSTERDOWN", err)
	}
}

func TestASessionEndsWithItsMaster(t *testing.T) {
	sentinels := redisd.RunSentinels(t)
	l := open(t, options(t, sentinelURL(sentinels)))
	s, err := l.Session(t.Context(), "n")
	must(t, err)
	defer s.Close()

	must(t, sentinels.Failover())

	until(t, "the session ends", func() bool {
		_, err := s.Do(t.Context(), "PING")
		return err != nil
	})
}

func TestEachVisitsEveryMasterOnce(t *testing.T) {
	c := redisd.RunCluster(t)
	l := open(t, options(t, clusterURL(c)))
	seen := map[string]int{}
	must(t, l.Each(t.Context(), func(s *Session) error {
		seen[s.Addr]++
		_, err := s.Do(t.Context(), "SCAN", 0)
		return err
	}))
	want := map[string]int{}
	for _, s := range c.Servers[:3] {
		want[s.Addr] = 1
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}
