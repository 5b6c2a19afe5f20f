package tests

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// goRedis is a go-redis client as people make it: with its default settings.
func goRedis(t *testing.T, n *node.Node) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: n.Addr})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestGoRedisAcquiresAndReleases(t *testing.T) {
	t.Parallel()
	n := start(t)
	c, ctx := goRedis(t, n), t.Context()
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Do(ctx, "SEM.CREATE", "pool", 1).Result(); got != "OK" || err != nil {
		t.Fatalf("create: got %v, %v, want OK", got, err)
	}
	got, err := c.Do(ctx, "SEM.ACQUIRE", "pool", "HOLDER", "a").Result()
	if _, refused := asGrant(got); err != nil || refused != nil {
		t.Fatalf("acquire: got %v, %v, want a grant", got, err)
	}
	if got, err := c.Do(ctx, "SEM.ACQUIRE", "pool", "HOLDER", "b").Result(); err != redis.Nil {
		t.Fatalf("acquire when full: got %v, %v, want redis.Nil", got, err)
	}
	fields, err := c.Do(ctx, "SEM.INFO", "pool").Result()
	if m, ok := fields.(map[any]any); err != nil || !ok || m["in_use"] != int64(1) {
		t.Fatalf("info: got %v, %v, want a map with in_use 1", fields, err)
	}
	if err := c.Do(ctx, "SEM.INFO", "nosuch").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOSEM ") {
		t.Fatalf("info: got %v, want NOSEM", err)
	}
	pipe := c.Pipeline()
	released, again := pipe.Do(ctx, "SEM.RELEASE", "pool", "a"), pipe.Do(ctx, "SEM.RELEASE", "pool", "a")
	if _, err := pipe.Exec(ctx); err != nil || released.Val() != int64(1) || again.Val() != int64(0) {
		t.Fatalf("pipeline: got %v, %v, %v, want 1, 0", released.Val(), again.Val(), err)
	}
}

// TestGoRedisRetriesTakeNothingTwice blocks for longer than the read timeout of go-redis, which then
// sends the command again on a new connection. Afterwards as many permits are in use as the program
// knows of.
func TestGoRedisRetriesTakeNothingTwice(t *testing.T) {
	t.Parallel()
	n := start(t)
	c, look, ctx := goRedis(t, n), dial(t, n), t.Context()
	look.want("OK", "SEM.CREATE", "pool", 2)
	look.acquire("pool", "HOLDER", "first", "PERMITS", 2)

	type outcome struct {
		reply any
		err   error
	}
	outcomes := make(chan outcome, 2)
	for _, holder := range [][]any{{"HOLDER", "named"}, {}} {
		go func() {
			args := append([]any{"SEM.ACQUIRE", "pool", "WAIT", 10_000}, holder...)
			reply, err := c.Do(ctx, args...).Result()
			outcomes <- outcome{reply, err}
		}()
	}
	joined(t, look, "pool", 2)
	// Released once both have given up their first connections and stand in line by their second. Only they
	// know when, so real time has to pass.
	givenUp := c.Options().ReadTimeout + time.Second
	<-time.After(givenUp)
	joined(t, look, "pool", 2)
	look.want(1, "SEM.RELEASE", "pool", "first")

	granted := map[string]bool{}
	for range 2 {
		got := <-outcomes
		g, err := asGrant(got.reply)
		if got.err != nil || err != nil {
			t.Fatalf("acquire: got %v, %v, want a grant", got.reply, got.err)
		}
		granted[g.holder] = true
	}
	trial.Await(t, func() error { return look.books("pool", int64(len(granted)), 0, 0) })
	for holder := range granted {
		look.want(1, "SEM.RELEASE", "pool", holder)
	}
}

// TestGoRedisGivesUpItsPlaceWithItsContext cancels a blocked call: go-redis closes the connection, and
// the place in line goes with it.
func TestGoRedisGivesUpItsPlaceWithItsContext(t *testing.T) {
	t.Parallel()
	n := start(t)
	look := dial(t, n)
	c := redis.NewClient(&redis.Options{Addr: n.Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer c.Close()
	look.want("OK", "SEM.CREATE", "pool", 1)
	look.acquire("pool", "HOLDER", "a")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := c.Do(ctx, "SEM.ACQUIRE", "pool", "HOLDER", "b", "WAIT", 60_000).Err(); err == nil || err == redis.Nil {
		t.Fatalf("acquire beyond its context: got %v, want an error of the connection", err)
	}
	joined(t, look, "pool", 0)
	look.want(1, "SEM.RELEASE", "pool", "a")
	if err := look.books("pool", 0, 1, 0); err != nil {
		t.Fatal(err)
	}
}

// redisCLI runs redis-cli and returns what it prints.
func redisCLI(t *testing.T, n *node.Node, stdin string, args ...string) string {
	t.Helper()
	port, err := resp.Port(n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cli := exec.CommandContext(ctx, "redis-cli", append([]string{"-p", fmt.Sprint(port)}, args...)...)
	cli.Stdin = strings.NewReader(stdin)
	out, err := cli.CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"PING"}, "PONG\n"},
		{[]string{"SEM.CREATE", "pool", "1"}, "OK\n"},
		{[]string{"--no-raw", "SEM.ACQUIRE", "pool", "HOLDER", "a", "PERSIST"}, "1) \"a\"\n2) (integer) "},
		{[]string{"--no-raw", "SEM.ACQUIRE", "pool", "WAIT", "50"}, "(nil)\n"},
		{[]string{"-3", "--no-raw", "SEM.INFO", "pool"}, "1# \"name\" => \"pool\"\n"},
		{[]string{"--no-raw", "SEM.RELEASE", "pool", "a"}, "(integer) 1\n"},
		{[]string{"SEM.INFO", "nosuch"}, "NOSEM "},
		{[]string{"SEM.HELP"}, "SEM.ACQUIRE"},
	} {
		if got := redisCLI(t, n, "", c.args...); !strings.Contains(got, c.want) {
			t.Errorf("redis-cli %v: got %q, want %q in it", c.args, got, c.want)
		}
	}
}

// TestRedisCLIFindsTheCommands looks at what redis-cli reads when it starts, for its hints.
func TestRedisCLIFindsTheCommands(t *testing.T) {
	t.Parallel()
	n := start(t)
	docs := redisCLI(t, n, "", "-3", "COMMAND", "DOCS")
	for _, name := range []string{"sem.acquire", "sem.release", "sem.renew", "sem.create", "summary", "arguments"} {
		if !strings.Contains(strings.ToLower(docs), name) {
			t.Errorf("COMMAND DOCS does not mention %s", name)
		}
	}
	if got := redisCLI(t, n, "", "COMMAND", "GETKEYS", "SEM.RELEASE", "pool", "a"); got != "pool\n" {
		t.Errorf("COMMAND GETKEYS: got %q, want pool", got)
	}
}

func TestRedisCLISessionAndPipe(t *testing.T) {
	t.Parallel()
	n := start(t)
	session := "SEM.CREATE pool 100\nSEM.ACQUIRE pool HOLDER \"a b\" PERSIST\nSEM.RELEASE pool \"a b\"\n"
	if got := redisCLI(t, n, session); !strings.HasPrefix(got, "OK\na b\n") || !strings.HasSuffix(got, "\n1\n") {
		t.Errorf("session: got %q, want OK, a grant and 1", got)
	}
	var mass []byte
	for i := range 100 {
		mass = resp.Encode(mass, "SEM.ACQUIRE", "pool", "HOLDER", i)
	}
	if got := redisCLI(t, n, string(mass), "--pipe"); !strings.Contains(got, "errors: 0, replies: 100") {
		t.Errorf("--pipe: got %q, want 100 replies without an error", got)
	}
	if err := dial(t, n).books("pool", 100, 0, 0); err != nil {
		t.Error(err)
	}
}
