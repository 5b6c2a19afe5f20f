package tests

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// patience is how long a test waits for what must happen. It is far beyond what a server needs.
const patience = 30 * time.Second

// binary is the server under test, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "semserver-tests-")
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

// start runs a node on a fresh data directory for the length of the test.
func start(t *testing.T, flags ...string) *node.Node {
	t.Helper()
	n := startOn(t, "127.0.0.1:0", t.TempDir(), flags...)
	t.Cleanup(func() { stop(t, n) })
	return n
}

// startOn runs a node on this address and data directory. The caller ends it.
func startOn(t *testing.T, addr, data string, flags ...string) *node.Node {
	t.Helper()
	n, err := node.Start(binary, addr, data, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// stop ends a node gracefully.
func stop(t *testing.T, n *node.Node) {
	t.Helper()
	if err := n.Stop(); err != nil {
		t.Errorf("exit: got %v, want status 0\n%s", err, n.Log())
	}
	sound(t, n)
}

// kill ends a node without warning.
func kill(t *testing.T, n *node.Node) {
	t.Helper()
	n.Kill()
	sound(t, n)
}

// sound checks that a node has complained of no fault of its own.
func sound(t *testing.T, n *node.Node) {
	t.Helper()
	for _, fault := range []string{"DATA RACE", "panic:", "goroutine 1 ["} {
		if strings.Contains(n.Log(), fault) {
			t.Fatalf("log contains %q:\n%s", fault, n.Log())
		}
	}
}

// client is a connection whose failures fail the test.
type client struct {
	*testing.T
	*resp.Conn
}

// dial connects for the length of the test.
func dial(t *testing.T, n *node.Node) *client {
	t.Helper()
	c, err := resp.Dial(n.Addr)
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

// grant is what ACQUIRE answers.
type grant struct {
	holder              string
	token, slot, leased int64
	replayed            bool
}

// asGrant reads a reply as a grant.
func asGrant(reply any) (grant, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 5 {
		return grant{}, fmt.Errorf("got %v, want a grant", reply)
	}
	holder, ok := parts[0].(string)
	var numbers [4]int64
	for i := range numbers {
		n, isNumber := parts[i+1].(int64)
		ok = ok && isNumber
		numbers[i] = n
	}
	if !ok {
		return grant{}, fmt.Errorf("got %v, want a grant", reply)
	}
	return grant{holder: holder, token: numbers[0], slot: numbers[1], leased: numbers[2], replayed: numbers[3] == 1}, nil
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

// refused reads a reply that must be an error of this code.
func (c *client) refused(code string) {
	c.Helper()
	reply := c.receive()
	if e, ok := reply.(resp.Error); !ok || e.Code() != code {
		c.Fatalf("got %v, want an error %s", reply, code)
	}
}

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

// books checks how many permits are in use, are available, and are waited for by how many.
func (c *client) books(key string, inUse, available, waiters int64) error {
	c.Helper()
	i := c.info(key)
	got := [3]int64{i["in_use"], i["available"], i["waiters"]}
	if want := [3]int64{inUse, available, waiters}; got != want {
		return fmt.Errorf("in use, available, waiters of %s: got %v, want %v", key, got, want)
	}
	return nil
}
