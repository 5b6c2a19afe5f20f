package link

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/tests/proxy"
	"github.com/semserver/semserver/tests/redisd"
)

func TestAKilledRedisIsToldTruthfully(t *testing.T) {
	s, l := single1(t, redisd.Durable()...)
	o := start(t, l, 20, "a", "b")
	for range 5 {
		s.Kill()
		until(t, "the loss is noticed", func() bool { return l.Ready() != nil })
		must(t, s.Start())
		back := time.Now()
		until(t, "the link is up again", func() bool { return l.Ready() == nil })
		if took := time.Since(back); took > time.Second {
			t.Logf("up again after %v; a machine under load may take longer than the second that is meant", took)
		}
		o.progress()
	}
	o.isTrue(lossless, always(s))
	o.only("CLUSTERDOWN", "unknown")
}

func TestARedisThatComesBackEmptyIsUsed(t *testing.T) {
	s, l := single1(t)
	o := start(t, l, 20, "a")
	must(t, s.RestartEmpty())
	o.progress()
	o.isTrue(lossy, always(s))
	o.only("CLUSTERDOWN", "unknown")
}

func TestAnIdleLinkDoesNotFailItsFirstCallAfterARestart(t *testing.T) {
	s, l := single1(t)
	for range 10 {
		call(t, l, increment("n"))
		must(t, s.Restart())
		until(t, "the link is up", func() bool { return l.Ready() == nil })
		if r := call(t, l, increment("n")); r.err != nil && code(r.err) != "CLUSTERDOWN" {
			t.Fatalf("got %v, want it done or certainly not", r.err)
		}
	}
}

func TestAPausedRedisLeavesOutcomesUnknownAndCountsOnce(t *testing.T) {
	s, l := single1(t)
	o := start(t, l, 20, "a")
	must(t, s.Pause())
	until(t, "the loss is noticed", func() bool { return l.Ready() != nil })
	r := call(t, l, increment("a-paused"))
	if code(r.err) != "CLUSTERDOWN" {
		t.Errorf("while it is paused: got %v, want CLUSTERDOWN", r.err)
	}
	must(t, s.Resume())
	o.progress()
	o.isTrue(lossless, always(s))
	o.only("CLUSTERDOWN", "unknown")
	if o.counts()["a"].unknown == 0 {
		t.Error("got no unknown outcome, want those of calls that were under way")
	}
}

func TestALoadingRedisTakesNoCalls(t *testing.T) {
	s, l := single1(t, "--key-load-delay", "200", "--loading-process-events-interval-bytes", "1024")
	_, err := s.Do("DEBUG", "POPULATE", 20_000)
	must(t, err)
	_, err = s.Do("SAVE")
	must(t, err)
	s.Kill()
	must(t, s.Launch())
	until(t, "it is seen to load", func() bool { err := l.Ready(); return err != nil && strings.Contains(err.Error(), "LOADING") })

	if r := call(t, l, increment("n")); code(r.err) != "CLUSTERDOWN" {
		t.Errorf("while it loads: got %v, want CLUSTERDOWN", r.err)
	}
	must(t, s.Ready())
	until(t, "the link is up", func() bool { return l.Ready() == nil })
	must(t, call(t, l, increment("n")).err)
}

func TestABusyRedisRefuses(t *testing.T) {
	s, l := single1(t, "--busy-reply-threshold", "20")
	o := start(t, l, 10, "a")
	r := wait(t, send(l, on(spin, []string{"k"})))
	if code(r.err) != "unknown" {
		t.Errorf("the call that keeps it busy: got %v, want it unknown", r.err)
	}
	until(t, "it is seen to be busy", func() bool { err := l.Ready(); return err != nil && strings.Contains(err.Error(), "BUSY") })

	if r := call(t, l, increment("n")); code(r.err) != "BACKEND" || !strings.Contains(r.err.Error(), "BUSY") {
		t.Errorf("while it is busy: got %v, want BACKEND with the words of Redis", r.err)
	}
	another, err := Open(t.Context(), options(t, "redis://"+s.Addr))
	must(t, err) // it passes
	another.Close()
	_, err = s.Do("SCRIPT", "KILL")
	must(t, err)
	o.progress()
	o.isTrue(lossless, always(s))
	o.only("BACKEND", "CLUSTERDOWN", "unknown")
}

func TestAMasterThatBecomesAReplicaTakesNoCalls(t *testing.T) {
	s, l := single1(t)
	o := start(t, l, 10, "a")
	other := redisd.Run(t)
	host, port, _ := strings.Cut(other.Addr, ":")
	_, err := s.Do("REPLICAOF", host, port)
	must(t, err)
	until(t, "it is noticed", func() bool { return l.Ready() != nil })
	if r := call(t, l, increment("n")); code(r.err) != "CLUSTERDOWN" || !strings.Contains(r.err.Error(), "replica") {
		t.Errorf("got %v, want CLUSTERDOWN for want of a master", r.err)
	}
	_, err = s.Do("REPLICAOF", "NO", "ONE")
	must(t, err)
	o.progress()
	o.end()
	o.only("CLUSTERDOWN", "unknown")
}

func TestWhatRedisRefusesWasNotDone(t *testing.T) {
	s, l := single1(t)
	must(t, call(t, l, increment("text")).err)
	for _, c := range []struct {
		name  string
		setup [][]any
		call  script.Call
		code  string
		words string
	}{
		{"a key of another type", nil, on(push, []string{"text"}), "WRONGTYPE", "something else"},
		{"a script that breaks after it wrote", nil, on(broken, []string{"k"}), "unknown", "Unknown Redis command"},
		{"out of memory", [][]any{{"CONFIG", "SET", "maxmemory", "1"}}, increment("n"), "BACKEND", "OOM"},
		{"memory again", [][]any{{"CONFIG", "SET", "maxmemory", "0"}}, increment("m"), "", ""},
		{"too few replicas", [][]any{{"CONFIG", "SET", "min-replicas-to-write", "1"}}, increment("n"), "CLUSTERDOWN", "NOREPLICAS"},
		{"enough of them", [][]any{{"CONFIG", "SET", "min-replicas-to-write", "0"}}, increment("m"), "", ""},
		{"a right that is missing", [][]any{{"ACL", "SETUSER", "default", "resetkeys", "~m*"}}, increment("n"), "BACKEND", "NOPERM"},
		{"rights again", [][]any{{"ACL", "SETUSER", "default", "allkeys"}}, increment("m"), "", ""},
	} {
		for _, command := range c.setup {
			_, err := s.Do(command...)
			must(t, err)
		}
		r := call(t, l, c.call)
		if got := code(r.err); got != c.code || r.err != nil && !strings.Contains(r.err.Error(), c.words) {
			t.Errorf("%s: got %v, want %s with %q", c.name, r.err, c.code, c.words)
		}
	}
	if got, _ := s.Do("EXISTS", "n"); got != int64(0) {
		t.Errorf("n: got %v, want nothing done", got)
	}
	if got, _ := s.Do("GET", "m"); got != "3" {
		t.Errorf("m: got %v, want 3", got)
	}
}

func TestADiskThatFailsIsRefused(t *testing.T) {
	s, l := single1(t, "--save", "3600 1000000")
	must(t, os.Remove(s.Dir)) // where it would save
	_, _ = s.Do("BGSAVE")
	until(t, "it cannot save", func() bool { return s.Field("rdb_last_bgsave_status") == "err" })

	if r := call(t, l, increment("n")); code(r.err) != "BACKEND" || !strings.Contains(r.err.Error(), "MISCONF") {
		t.Errorf("got %v, want BACKEND with the words of Redis", r.err)
	}
}

// through is a Link whose network can be broken.
func through(t *testing.T) (*redisd.Server, *proxy.Proxy, *Link) {
	t.Helper()
	s := redisd.Run(t)
	p, err := proxy.Start(s.Addr)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return s, p, open(t, options(t, "redis://"+p.Addr))
}

func TestABrokenNetworkIsToldTruthfully(t *testing.T) {
	s, p, l := through(t)
	o := start(t, l, 20, "a", "b")
	for name, fault := range map[string]func(){
		"connections reset":  p.Break,
		"answers lost":       p.Deafen,
		"a cable pulled":     p.Silence,
		"connections barred": p.Shut,
	} {
		fault()
		if name != "connections reset" {
			until(t, name+" is noticed", func() bool { return l.Ready() != nil })
		}
		p.Break()
		p.Restore()
		o.progress()
	}
	o.isTrue(lossless, always(s))
	o.only("CLUSTERDOWN", "unknown")
	if o.counts()["a"].unknown == 0 {
		t.Error("got no unknown outcome, want those of calls whose answers were lost")
	}
}

func TestAReplyThatIsCutIsUnknown(t *testing.T) {
	s, p, l := through(t)
	must(t, call(t, l, increment("n")).err)
	p.Deafen()
	ended := send(l, increment("n"))
	until(t, "it is executed", func() bool { got, _ := s.Do("GET", "n"); return got == "2" })
	p.Break()
	if r := wait(t, ended); code(r.err) != "unknown" {
		t.Errorf("got %v, want it unknown: it was executed", r.err)
	}
}
