package semctl

import (
	"strings"
	"testing"
)

func TestSemaphoreIsMadeChangedShownAndDeleted(t *testing.T) {
	t.Parallel()
	s := start(t)

	s.ok("create", "pool", "2", "--lease", "10s", "--max-lease", "1m", "--max-hold", "1h", "--quarantine", "1500ms", "--idle", "24h")
	s.ok("create", "pool", "2")
	if o := s.ctl(1, "create", "pool", "3"); !strings.Contains(o.stderr, "CONFLICT") {
		t.Errorf("create with another capacity: got %q, want CONFLICT", o.stderr)
	}
	s.ok("create", "pool", "3", "--if-absent")
	if got := s.object(0, "resize", "pool", "5", "--lease", "20s"); got["capacity"] != 5.0 || got["available"] != 5.0 {
		t.Errorf("resize: got %v, want capacity 5", got)
	}
	info := s.object(0, "info", "pool")
	for field, want := range map[string]float64{
		"capacity": 5, "lease": 20000, "maxlease": 60000, "maxhold": 3600000, "quarantine": 1500, "idle": 86400000,
	} {
		if info[field] != want {
			t.Errorf("%s: got %v, want %v", field, info[field], want)
		}
	}
	if text := s.ok("info", "pool"); !strings.Contains(text, "longest lease") || !strings.Contains(text, "20s") {
		t.Errorf("info: got %q, want the settings in words", text)
	}
	if got := s.object(0, "reconcile", "pool"); got["reconciled"] != 0.0 {
		t.Errorf("reconcile: got %v, want 0", got)
	}
	if got := s.object(0, "delete", "pool", "--yes"); got["deleted"] != true {
		t.Errorf("delete: got %v, want it deleted", got)
	}
	s.ctl(1, "info", "pool")
}

func TestNothingIsDestroyedWithoutAYes(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("acquire", "pool", "--capacity", "1", "--holder", "w")

	// Standard input is no terminal here, so nobody can be asked.
	for _, args := range [][]string{
		{"delete", "pool"}, {"delete", "pool", "--force"}, {"create", "new", "1", "--min-token", "7"}, {"node", "remove", "x"},
	} {
		o := s.ctl(64, args...)
		if !strings.Contains(o.stderr, "--yes") {
			t.Errorf("%q: got %q, want it to name --yes", args, o.stderr)
		}
	}
	if o := s.ctl(64, "delete", "pool"); !strings.Contains(o.stderr, "1 of 1 permits are held") {
		t.Errorf("delete: got %q, want it to say what would be lost", o.stderr)
	}
	s.ctl(1, "info", "new")
	if o := s.ctl(1, "delete", "pool", "--yes"); !strings.Contains(o.stderr, "INUSE") {
		t.Errorf("delete of what is held: got %q, want INUSE", o.stderr)
	}
	s.ok("delete", "pool", "--yes", "--force")
	s.ctl(1, "delete", "pool", "--yes")
	s.ctl(1, "delete", "pool")
}

func TestListingsShowEverybodyOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 1203 { // more than one page of the server's, and of ours
		s.do("SEM.ACQUIRE", "crowd", "HOLDER", i, "CAPACITY", 5000, "LABEL", "pod")
	}
	s.ok("create", "alone", "1")

	if got := len(s.objects(0, "holders", "crowd")); got != 1203 {
		t.Errorf("holders: got %d rows, want 1203", got)
	}
	if got := strings.Count(s.ok("holders", "crowd"), "pod"); got != 1203 {
		t.Errorf("holders: got %d lines, want 1203", got)
	}
	all := s.objects(0, "list")
	if len(all) != 2 {
		t.Errorf("list: got %v, want two semaphores", all)
	}
	if some := s.objects(0, "list", "cro*"); len(some) != 1 || some[0]["in_use"] != 1203.0 {
		t.Errorf("list cro*: got %v, want crowd with 1203 in use", some)
	}
	if o := s.ctl(0, "list", "nosuch*"); o.stdout != "" || !strings.Contains(o.stderr, "no semaphores") {
		t.Errorf("an empty list: got %+v, want a word on stderr", o)
	}
	if o := s.ctl(0, "waiters", "crowd"); !strings.Contains(o.stderr, "nobody waits") {
		t.Errorf("an empty line: got %+v, want a word on stderr", o)
	}
	s.ctl(1, "holders", "nosuch")
}

func TestNodesAreListedAndTakenCareOf(t *testing.T) {
	t.Parallel()
	s := start(t, "--node-id", "alpha")

	nodes := s.objects(0, "node", "list")

	if len(nodes) != 1 || nodes[0]["label"] != "alpha" || nodes[0]["role"] != "leader" {
		t.Errorf("got %v, want alpha, the leader", nodes)
	}
	if text := s.ok("node", "list"); !strings.Contains(text, "alpha") || !strings.Contains(text, "leader") {
		t.Errorf("got %q, want alpha, the leader", text)
	}
	s.ok("node", "snapshot")
	s.ctl(1, "node", "remove", "nosuch", "--yes")
}

func TestNamesOfAnyBytesComeThrough(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := "a\x1b[2J\xff"
	s.ok("create", name, "1")
	s.ok("acquire", name, "--holder", "h\r\n", "--label", "\x1b]0;owned\a")

	list, holders := s.ok("list"), s.ok("holders", name)

	if strings.ContainsAny(list+holders, "\x1b\r\a") {
		t.Errorf("got %q and %q, want no control characters", list, holders)
	}
	if !strings.Contains(list, `"a\x1b[2J\xff"`) {
		t.Errorf("list: got %q, want the name quoted", list)
	}
	// JSON has no strings of any bytes.
	if got, ok := s.objects(0, "list")[0]["name"].(map[string]any); !ok || got["base64"] != "YRtbMkr/" {
		t.Errorf("list --json: got %v, want the name in base64", got)
	}
	s.ok("release", name, "h\r\n")
}
