package tests

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLimitsAreEnforced(t *testing.T) {
	t.Parallel()
	n := start(t, "--max-waiters", "1", "--max-semaphores", "2", "--max-wait", "50s", "--max-lease", "40s",
		"--default-lease", "7s", "--default-idle", "1h", "--max-clients", "4", "--default-capacity", "api:*=2")
	a, b, c := dial(t, n), dial(t, n), dial(t, n)
	a.want("OK", "SEM.CREATE", "pool", 1)

	if g := a.acquire("pool", "HOLDER", "a"); g.leased > 7000 {
		t.Errorf("default lease: got %d, want 7000", g.leased)
	}
	refuse := func(code string, args ...any) {
		t.Helper()
		a.send(args...)
		a.refused(code)
	}
	refuse("ERR", "SEM.ACQUIRE", "pool", "LEASE", 40001)
	refuse("ERR", "SEM.RENEW", "pool", "a", "LEASE", 40001)
	refuse("ERR", "SEM.ACQUIRE", "pool", "WAIT", 50001)

	b.send("SEM.ACQUIRE", "pool", "HOLDER", "b", "WAIT", 50000)
	joined(t, a, "pool", 1)
	refuse("QUEUEFULL", "SEM.ACQUIRE", "pool", "HOLDER", "c", "WAIT", 50000)
	if got := a.do("SEM.ACQUIRE", "pool", "HOLDER", "c"); got != nil {
		t.Errorf("without WAIT: got %v, want none", got)
	}

	a.acquire("api:x", "HOLDER", "a")
	if i := a.info("api:x"); i["capacity"] != 2 || i["idle"] != 3600000 {
		t.Errorf("semaphore by rule: got %v, want capacity 2 and idle 3600000", i)
	}
	refuse("NOSEM", "SEM.ACQUIRE", "other")
	refuse("ERR", "SEM.CREATE", "third", 1)
	refuse("ERR", "SEM.ACQUIRE", "api:y")

	c.want("PONG", "PING")
	dial(t, n).want("PONG", "PING")
	dial(t, n).refused("ERR") // one connection too many is told so
}

func TestPasswordIsAskedFor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := start(t, "--password-file", file)
	c := dial(t, n)
	for _, step := range []struct {
		code string
		args []any
	}{
		{"NOAUTH", []any{"PING"}},
		{"NOAUTH", []any{"SEM.CREATE", "pool", 1}},
		{"NOAUTH", []any{"HELLO", 3}},
		{"WRONGPASS", []any{"AUTH", "wrong"}},
		{"WRONGPASS", []any{"HELLO", 3, "AUTH", "default", "wrong"}},
		{"NOAUTH", []any{"SEM.INFO", "pool"}},
	} {
		c.send(step.args...)
		c.refused(step.code)
	}
	c.want("OK", "AUTH", "secret")
	c.want("OK", "SEM.CREATE", "pool", 1)
	c.want("RESET", "RESET")
	c.send("SEM.INFO", "pool")
	c.refused("NOAUTH")
	c.want("OK", "AUTH", "default", "secret")
	if err := c.books("pool", 0, 1, 0); err != nil {
		t.Error(err)
	}
}
