package semctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

func TestBenchMeasuresEveryKindOfLoadAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, args := range [][]string{
		{"-n", "500"},
		{"-n", "500", "--pipeline", "16"},
		{"-n", "500", "--pipeline", "16", "--acquires-only"},
		{"-n", "500", "--semaphores", "7"},
		{"-n", "200", "--capacity", "3", "--wait", "30s", "--hold", "1ms"},
		{"-n", "50", "--rate", "1000"},
		{"--for", "1s", "--warmup", "10ms"},
	} {
		got := s.object(0, append([]string{"bench", "--clients", "8"}, args...)...)

		if args[0] == "-n" {
			if n, err := strconv.ParseFloat(args[1], 64); err != nil || got["granted"].(float64) < n {
				t.Errorf("%q: got %v grants, want them all counted", args, got["granted"])
			}
		}
		acquire, release := got["acquire"].(map[string]any), got["release"].(map[string]any)
		if got["granted"].(float64) < 1 || got["per_second"].(float64) <= 0 || acquire["count"] != got["granted"] {
			t.Errorf("%q: got %v, want grants", args, got)
		}
		if acquire["p50_us"].(float64) <= 0 || acquire["p99_us"].(float64) < acquire["p50_us"].(float64) {
			t.Errorf("%q: got %v, want percentiles that grow", args, acquire)
		}
		if only := strings.Contains(fmt.Sprint(args), "acquires-only"); only != (release["count"] == 0.0) {
			t.Errorf("%q: got %v releases", args, release["count"])
		}
		if errors := got["errors"].(map[string]any); len(errors) > 0 {
			t.Errorf("%q: got %v, want no errors", args, errors)
		}
		if left := fmt.Sprint(s.do("SEM.SCAN", 0)); left != "[0 []]" {
			t.Errorf("%q: got %s afterwards, want no semaphore left", args, left)
		}
	}
}

func TestBenchCountsWhoeverHoldsAndWhoeverIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)

	waiting := s.object(0, "bench", "-n", "300", "--clients", "20", "--capacity", "4", "--wait", "30s", "--hold", "2ms")
	refused := s.object(0, "bench", "-n", "300", "--clients", "20", "--capacity", "1", "--hold", "2ms")

	if most := waiting["most_at_once"]; most != 4.0 {
		t.Errorf("most at once: got %v, want 4", most)
	}
	if n := refused["refused"].(float64); n == 0 || n+refused["granted"].(float64) < 300 {
		t.Errorf("got %v, want some refused, and all counted", refused)
	}
}

func TestBenchGoesOnWithTheOtherServerWhenOneIsLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := startProxy(t, s.Addr) // as if it were a second node
	bench := begin(t, semctlAt(t, p.Addr().String()+","+s.Addr, "bench", "--for", "2s", "--warmup", "0s", "--clients", "4", "--json"))
	s.awaitBench()

	p.cut()

	o := bench.end()
	if o.status != 0 {
		t.Fatalf("got %+v, want status 0", o)
	}
	var got struct {
		Errors map[string]int
		Addrs  []struct {
			Addr    string
			Granted int
			Errors  map[string]int
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || len(got.Addrs) != 2 {
		t.Fatalf("got %q, %v, want the figures of two addresses", o.stdout, err)
	}
	if lost, other := got.Addrs[0], got.Addrs[1]; lost.Errors["connection"] == 0 || len(other.Errors) > 0 || other.Granted == 0 {
		t.Errorf("got %+v, want lost connections at the first, and the work at the second", got.Addrs)
	}
}

// awaitBench waits until a bench has been granted something.
func (s *server) awaitBench() {
	s.t.Helper()
	trial.Await(s.t, func() error {
		if key := s.benched(); key == "" || s.figure(key, "grants_immediate") == 0 {
			return errors.New("the bench has not begun")
		}
		return nil
	})
}

// benched is a semaphore that a bench has made; empty: there is none.
func (s *server) benched() string {
	s.t.Helper()
	for _, key := range s.do("SEM.SCAN", 0).([]any)[1].([]any) {
		if strings.HasPrefix(key.(string), "semctl-bench") {
			return key.(string)
		}
	}
	return ""
}

// startRedis runs a redis-server for the length of the test.
func startRedis(t *testing.T) string {
	t.Helper()
	addr, err := node.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	port, err := resp.Port(addr)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "redis-server", "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	trial.Await(t, func() error {
		conn, err := resp.Dial(addr)
		if err != nil {
			return fmt.Errorf("redis-server does not answer: %w", err)
		}
		return conn.Close()
	})
	return addr
}

func TestBenchPutsTheSameLoadOnRedis(t *testing.T) {
	t.Parallel()
	addr := startRedis(t)
	for _, args := range [][]string{
		{"-n", "500"},
		{"-n", "500", "--pipeline", "16", "--acquires-only"},
		{"-n", "200", "--capacity", "3", "--wait", "30s", "--hold", "1ms"},
	} {
		o := finish(t, semctlAt(t, addr, append([]string{"bench", "--redis", "--clients", "8", "--json"}, args...)...))

		if o.status != 0 || !strings.Contains(o.stdout, `"errors":{}`) || strings.Contains(o.stdout, `"granted":0,`) {
			t.Errorf("%q: got %+v, want grants without errors", args, o)
		}
	}
	conn, err := resp.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := conn.Do("DBSIZE"); got != any(int64(0)) || err != nil {
		t.Errorf("keys afterwards: got %v, %v, want none", got, err)
	}
}

func TestBenchIsStoppedByASignalAndReports(t *testing.T) {
	t.Parallel()
	s := start(t)
	bench := begin(t, s.command("bench", "--for", "1h", "--clients", "4", "--warmup", "0s", "--json"))
	s.awaitBench()

	_ = bench.Process.Signal(os.Interrupt)

	if o := bench.end(); o.status != 0 || !strings.Contains(o.stdout, `"granted":`) {
		t.Errorf("got %+v, want the report of what was measured", o)
	}
	if left := fmt.Sprint(s.do("SEM.SCAN", 0)); left != "[0 []]" {
		t.Errorf("got %s afterwards, want no semaphore left", left)
	}
}
