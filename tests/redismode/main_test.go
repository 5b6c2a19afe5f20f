package redismode

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/redisd"
)

const (
	// patience is how long a test waits for what must happen, however slow the machine.
	patience = 20 * time.Second
	// pollEvery is how often a condition is looked at.
	pollEvery = 5 * time.Millisecond
)

// binary is the server under test, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "semserver-redismode-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if binary, err = node.Build(folder, buildFlags()...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// serve runs a semserver on this Redis for the length of the test.
func serve(t *testing.T, r *redisd.Server, flags ...string) *node.Node {
	t.Helper()
	n, err := node.Start(binary, "127.0.0.1:0", "", append([]string{"--redis", "redis://" + r.Addr}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Errorf("exit: got %v, want status 0\n%s", err, n.Log())
		}
		sound(t, n)
	})
	return n
}

// sound checks that a server has complained of no fault of its own.
func sound(t *testing.T, n *node.Node) {
	t.Helper()
	for _, fault := range []string{"DATA RACE", "panic:", "goroutine 1 ["} {
		if strings.Contains(n.Log(), fault) {
			t.Errorf("log contains %q:\n%s", fault, n.Log())
		}
	}
}

// client is a connection whose failures fail the test.
type client struct {
	*testing.T
	*resp.Conn
}

// dial connects to a server for the length of the test.
func dial(t *testing.T, addr string) *client {
	t.Helper()
	c, err := resp.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	return &client{T: t, Conn: c}
}

// send writes a command without waiting for its reply.
func (c *client) send(args ...any) {
	c.Helper()
	if err := c.Send(args...); err != nil {
		c.Fatalf("%v: %v", args, err)
	}
}

// receive reads a reply.
func (c *client) receive() any {
	c.Helper()
	reply, err := c.Receive(patience)
	if err != nil {
		c.Fatalf("reply: %v", err)
	}
	return reply
}

// do carries out a command.
func (c *client) do(args ...any) any {
	c.Helper()
	c.send(args...)
	return c.receive()
}

// want carries out a command and compares the reply as text.
func (c *client) want(want any, args ...any) {
	c.Helper()
	if got := fmt.Sprint(c.do(args...)); got != fmt.Sprint(want) {
		c.Fatalf("%v: got %v, want %v", args, got, want)
	}
}

// refused carries out a command that must be refused with this code, and returns the text.
func (c *client) refused(code string, args ...any) string {
	c.Helper()
	reply := c.do(args...)
	if !isError(reply, code) {
		c.Fatalf("%v: got %v, want an error %s", args, reply, code)
	}
	return string(reply.(resp.Error))
}

// isError reports whether a reply is an error of this code.
func isError(reply any, code string) bool {
	e, ok := reply.(resp.Error)
	return ok && e.Code() == code
}

// acquire carries out an ACQUIRE that must be granted.
func (c *client) acquire(args ...any) grant {
	c.Helper()
	c.send(append([]any{"SEM.ACQUIRE"}, args...)...)
	return c.granted()
}

// granted reads a reply that must be a grant.
func (c *client) granted() grant {
	c.Helper()
	g, err := asGrant(c.receive())
	if err != nil {
		c.Fatal(err)
	}
	return g
}

// waits sends an ACQUIRE and returns when it stands in line, behind the others that do.
func (c *client) waits(look *client, key, holder string, ms int) {
	c.Helper()
	before := look.info(key)["waiters"]
	c.send("SEM.ACQUIRE", key, "HOLDER", holder, "WAIT", ms, "LEASE", longLease)
	trial.Await(c.T, func() error {
		if got := look.info(key)["waiters"]; got <= before {
			return fmt.Errorf("waiters of %s: got %d, want %d", key, got, before+1)
		}
		return nil
	})
}

// longLease outlasts every test, in milliseconds.
const longLease = 600_000

// info is SEM.INFO.
func (c *client) info(key string) map[string]int64 {
	c.Helper()
	reply := c.do("SEM.INFO", key)
	flat, ok := reply.([]any)
	if !ok {
		c.Fatalf("SEM.INFO %s: got %v, want fields", key, reply)
	}
	fields := map[string]int64{}
	for i := 0; i+1 < len(flat); i += 2 {
		if n, isNumber := flat[i+1].(int64); isNumber {
			fields[fmt.Sprint(flat[i])] = n
		}
	}
	return fields
}

// ask carries out a command of Redis, which must succeed.
func ask(t *testing.T, r *redisd.Server, args ...any) any {
	t.Helper()
	reply, err := r.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}
