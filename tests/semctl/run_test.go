package semctl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
)

func TestRunEndsAsItsCommandDoes(t *testing.T) {
	t.Parallel()
	s := start(t)
	for script, want := range map[string]int{
		"exit 0":          0,
		"exit 7":          7,
		"exit 255":        255,
		"kill -TERM $$":   143,
		"kill -KILL $$":   137,
		"nosuchcommand":   127,
		"exec nosuchfile": 127,
	} {
		guard(t, s.Addr, script, "--sem", "loader", "--capacity", "1").start().wants(want)
		s.free("loader")
	}
	if got := s.figure("loader", "releases"); got != 7 {
		t.Errorf("releases: got %d, want one for each run", got)
	}
}

func TestRunWithoutACommandThatCanBeRunTakesNoPermit(t *testing.T) {
	t.Parallel()
	s := start(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.ok("create", "loader", "1")
	for want, args := range map[int][]string{
		127: {"--", "nosuchcommand"},
		126: {"--", plain},
		64:  {},
	} {
		s.ctl(want, append([]string{"run", "--sem", "loader"}, args...)...)
	}
	if got := s.figure("loader", "grants_immediate"); got != 0 {
		t.Errorf("grants: got %d, want 0", got)
	}
}

func TestRunPassesOnInputAndOutput(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, "cat; echo oops >&2", "--sem", "loader", "--capacity", "1")
	g.Stdin = strings.NewReader("rows\n")
	g.start().wants(0)
	if g.stdout.String() != "rows\n" || g.stderr.String() != "oops\n" {
		t.Errorf("got %q and %q, want the command's own output and nothing else", g.stdout.String(), g.stderr.String())
	}
}

func TestRunTellsTheCommandWhatItHolds(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.CREATE", "my loader", 5)
	s.do("SEM.ACQUIRE", "my loader", "HOLDER", "other")
	g := guard(t, s.Addr, "env | grep ^SEM_ | sort; sem=$(semctl holders 'my loader' --json); echo \"$sem\"",
		"--sem", "my loader", "--permits", "2", "--holder", "pod-7", "--label", "the job")
	g.Env = append(g.Env, "SEM_TOKEN=inherited", "SEM_SLOTS=inherited")
	g.start().wants(0)

	out := g.stdout.String()
	row := out[strings.Index(out, "{"):]
	for _, want := range []string{"SEM_NAME=my loader\n", "SEM_HOLDER=pod-7\n", "SEM_SLOT=1\n", "SEM_SLOTS=1-2\n"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("got %q, want %q in it once", out, want)
		}
	}
	token := strings.TrimSpace(strings.SplitN(out[strings.Index(out, "SEM_TOKEN=")+len("SEM_TOKEN="):], "\n", 2)[0])
	if !strings.Contains(row, `"token":`+token) || !strings.Contains(row, "the job") {
		t.Errorf("got token %s, want it and the label in the listing %s", token, row)
	}
}

func TestRunWithTryDoesNotWait(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.ACQUIRE", "loader", "CAPACITY", 1, "HOLDER", "other")
	g := guard(t, s.Addr, "echo ran", "--sem", "loader", "--try").start()
	g.wants(75)
	if g.stdout.String() != "" || !strings.Contains(g.stderr.String(), "no permit in time") {
		t.Errorf("got %q and %q, want the reason alone", g.stdout.String(), g.stderr.String())
	}
	quiet := guard(t, s.Addr, "echo ran", "--sem", "loader", "--try", "--quiet").start()
	quiet.wants(75)
	if quiet.stdout.String() != "" || quiet.stderr.String() != "" {
		t.Errorf("with --quiet: got %q and %q, want nothing", quiet.stdout.String(), quiet.stderr.String())
	}
	if got := s.figure("loader", "refused"); got != 2 {
		t.Errorf("refused: got %d, want 2", got)
	}
}

func TestRunEndsWhenTheWaitIsOver(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.ACQUIRE", "loader", "CAPACITY", 1, "HOLDER", "other", "LEASE", 3600000)
	guard(t, s.Addr, "echo ran", "--sem", "loader", "--wait", "100ms").start().wants(75)
	if got := s.figure("loader", "wait_timeouts"); got != 1 {
		t.Errorf("waits that timed out: got %d, want 1", got)
	}
}

func TestRunSaysWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	s := start(t)
	for want, flags := range map[string][]string{
		"NOSEM":   {"--sem", "nosuch"},
		"TOOMANY": {"--sem", "loader", "--capacity", "1", "--permits", "2"},
		"LEASE":   {"--sem", "loader", "--capacity", "1", "--lease", "1000h"},
	} {
		g := guard(t, s.Addr, "echo ran", flags...).start()
		g.wants(1)
		if g.stdout.String() != "" || !strings.Contains(g.stderr.String(), want) {
			t.Errorf("%q: got %q and %q, want a word of %s", flags, g.stdout.String(), g.stderr.String(), want)
		}
	}
}

func TestRunRefusesAWrongCommandLineBeforeItAsksAnybody(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--sem":       {"--", "true"},
		"no command":  {"--sem", "x"},
		"--keep":      {"--sem", "x", "--keep", "--", "true"},
		"--persist":   {"--sem", "x", "--persist", "--", "true"},
		"--holder":    {"--sem", "x", "--keep", "--persist"},
		"--fresh":     {"--sem", "x", "--fresh", "--", "true"},
		"--lease":     {"--sem", "x", "--lease", "10ms", "--", "true"},
		"--wait":      {"--sem", "x", "--wait", "-1s", "--", "true"},
		"--grace":     {"--sem", "x", "--grace", "20s", "--", "true"},
		"--signal":    {"--sem", "x", "--signal", "NOSUCH", "--", "true"},
		"--on-lost":   {"--sem", "x", "--on-lost", "hope", "--", "true"},
		"unavailable": {"--sem", "x", "--on-unavailable", "hope", "--", "true"},
	} {
		o := finish(t, semctlAt(t, "127.0.0.1:1", append([]string{"run"}, args...)...))
		if o.status != 64 || !strings.Contains(o.stderr, want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: got status %d and %q, want 64 and a line about %s", args, o.status, o.stderr, want)
		}
	}
}

func TestRunWithoutAServerFailsOrRunsAsToldTo(t *testing.T) {
	t.Parallel()
	free, err := node.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, free, "echo ran", "--sem", "loader", "--capacity", "8", "--timeout", "200ms").start()
	g.wants(69)
	if g.stdout.String() != "" || !strings.Contains(g.stderr.String(), free) {
		t.Errorf("got %q and %q, want the address alone", g.stdout.String(), g.stderr.String())
	}

	g = guard(t, free, "env | grep ^SEM_", "--sem", "loader", "--capacity", "8", "--timeout", "200ms", "--on-unavailable", "run")
	g.Env = append(g.Env, "SEM_TOKEN=inherited")
	g.start().wants(0)
	if g.stdout.String() != "SEM_NAME=loader\n" || !strings.Contains(g.stderr.String(), "without a permit") {
		t.Errorf("got %q and %q, want a run that knows of no permit", g.stdout.String(), g.stderr.String())
	}
}

func TestRunAsksTheNextServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	free, err := node.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	guard(t, free+","+s.Addr, "exit 3", "--sem", "loader", "--capacity", "1").start().wants(3)
	s.free("loader")
}

func TestRunTellsEventsAsJSON(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("SEM.ACQUIRE", "loader", "CAPACITY", 1, "HOLDER", "other", "LEASE", 3600000)
	g := guard(t, s.Addr, "echo ran; exit 4", "--json", "--sem", "loader").start()
	trial.Await(t, func() error {
		if !strings.Contains(g.stderr.String(), "waiting") {
			return fmt.Errorf("got %q, want it to wait", g.stderr.String())
		}
		return nil
	})
	s.do("SEM.RELEASE", "loader", "other")
	g.wants(4)

	var names []string
	for _, e := range g.events() {
		names = append(names, e["event"].(string))
	}
	if want := []string{"waiting", "started", "ended", "released"}; !slices.Equal(slices.Compact(names), want) {
		t.Errorf("got events %v, want %v", names, want)
	}
	waiting, ended := g.events()[0], g.events()[len(names)-2]
	holders := waiting["holders"].([]any)[0].(map[string]any)
	if waiting["place"] != 1.0 || waiting["waiters"] != 1.0 || holders["holder"] != "other" || ended["status"] != 4.0 {
		t.Errorf("got %v and %v, want place 1 behind other, and status 4", waiting, ended)
	}
	if g.stdout.String() != "ran\n" {
		t.Errorf("got %q on stdout, want the command's output alone", g.stdout.String())
	}
}

func TestKeptPermitIsForAnotherProcess(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := "it's mine"
	o := s.ctl(0, "run", "--sem", name, "--capacity", "1", "--keep", "--lease", "1h")
	if got := s.figure(name, "in_use"); got != 1 {
		t.Fatalf("in use: got %d, want 1 after semctl has ended", got)
	}

	c := exec.CommandContext(t.Context(), "sh", "-c", `eval "$0"; exec semctl release "$SEM_NAME" "$SEM_HOLDER" --token "$SEM_TOKEN"`, o.stdout)
	c.Env = environment("SEMCTL_ADDR=" + s.Addr)
	if o := finish(t, c); o.status != 0 {
		t.Errorf("release: got %+v, want status 0", o)
	}
	s.free(name)

	got := s.object(0, "run", "--sem", name, "--keep", "--persist", "--holder", "machine-1")
	if got["holder"] != "machine-1" || got["token"].(float64) <= 0 || got["slot"] != 0.0 {
		t.Errorf("got %v, want the permit of machine-1", got)
	}
	if got := s.figure(name, "next_expiry_ms"); got != -1 {
		t.Errorf("next expiry: got %d, want none", got)
	}
	s.ctl(75, "run", "--sem", name, "--try", "--keep")
}

func TestRunRefusesWhatNobodyCouldBeAskedFor(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{
		{"--sem", "x", "--permits", "0"}, {"--sem", ""}, {"--sem", "x", "--capacity", "-1"},
		{"--sem", "x", "--lesae", "5s"}, {"--sem", "x", "--label", strings.Repeat("l", 1025)}, {"--sem", "x", "--lease", "500ms", "--grace", "250ms"},
	} {
		g := guard(t, nobody(t), "exit 7", flags...).start()
		g.wants(64)
		if got := g.stderr.String(); strings.Count(got, "\n") != 1 {
			t.Errorf("%q: got %q, want one line", flags, got)
		}
	}
}

func TestGrantThatCouldNotBeToldIsGivenBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "pool", "1")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{
		{"acquire", "pool"}, {"acquire", "pool", "--persist", "--holder", "h"}, {"run", "--sem", "pool", "--keep"},
	} {
		c := s.command(args...)
		c.Stdout = full
		if err := c.Run(); c.ProcessState.ExitCode() != 70 {
			t.Errorf("%q: got %v, want status 70", args, err)
		}
		s.free("pool")
	}
}

func TestSecondSignalEndsTheGivingBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	network := s.broken()
	g := guard(t, network.Addr, "echo $$ > $FOLDER/pid; exec sleep 100", "--sem", "pool", "--capacity", "1", "--lease", "1h").start()
	pid := g.pid("pid")
	network.Silence()
	g.signal(syscall.SIGTERM)
	gone(t, pid)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.wants(143)
	}()
	trial.Until(t, "a second signal ends it", func() bool {
		_ = g.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

func TestEventsOfRunKeepEveryByte(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := guard(t, s.Addr, "exit 0", "--json", "--sem", "pool", "--capacity", "1", "--holder", "h\xff").start()
	g.wants(0)
	if got := fmt.Sprint(g.events()[0]["holder"]); got != "map[base64:aP8=]" {
		t.Errorf("got the holder %s, want its bytes", got)
	}
}
