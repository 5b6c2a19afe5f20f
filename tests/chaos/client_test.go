package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/resp"
)

// client is a connection whose failures fail the test.
type client struct {
	testing.TB
	*resp.Conn
}

func dial(t testing.TB, addr string) client {
	t.Helper()
	c, err := resp.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{t, c}
}

// do sends a command and returns its reply.
func (c client) do(args ...any) any {
	c.Helper()
	reply, err := c.Do(args...)
	if err != nil {
		c.Fatalf("%v: %v", args, err)
	}
	return reply
}

// want sends a command whose reply must be this.
func (c client) want(want any, args ...any) {
	c.Helper()
	if got := c.do(args...); fmt.Sprint(got) != fmt.Sprint(want) {
		c.Fatalf("%v: got %v, want %v", args, got, want)
	}
}

// grant is what ACQUIRE answers.
type grant struct {
	holder      string
	token, slot int64
	left        time.Duration
	replayed    bool
}

func asGrant(reply any) (grant, error) {
	row, ok := reply.([]any)
	if !ok || len(row) < 5 {
		return grant{}, fmt.Errorf("got %v, want a grant", reply)
	}
	return grant{
		holder: row[0].(string), token: row[1].(int64), slot: row[2].(int64),
		left: time.Duration(row[3].(int64)) * time.Millisecond, replayed: row[4] == int64(1),
	}, nil
}

// acquire must be granted.
func (c client) acquire(key string, args ...any) grant {
	c.Helper()
	g, err := asGrant(c.do(append([]any{"SEM.ACQUIRE", key}, args...)...))
	if err != nil {
		c.Fatalf("SEM.ACQUIRE %s %v: %v", key, args, err)
	}
	return g
}

// start sends a command and does not wait for the reply.
func (c client) start(args ...any) {
	c.Helper()
	if err := c.Send(args...); err != nil {
		c.Fatalf("%v: %v", args, err)
	}
}

// reply is that to a command which was started.
func (c client) reply() any {
	c.Helper()
	got, err := c.Receive(patience)
	if err != nil {
		c.Fatalf("reply: %v", err)
	}
	return got
}

// granted is the reply to an ACQUIRE which was started and must be granted.
func (c client) granted() grant {
	c.Helper()
	g, err := asGrant(c.reply())
	if err != nil {
		c.Fatal(err)
	}
	return g
}

// line is who waits, in order.
func (c client) line(key string) []string {
	c.Helper()
	page, ok := c.do("SEM.WAITERS", key).([]any)
	if !ok || len(page) != 2 {
		return nil
	}
	var holders []string
	for _, row := range page[1].([]any) {
		holders = append(holders, fmt.Sprint(row.([]any)[0]))
	}
	return holders
}

// inLine waits until exactly these stand in line.
func (c client) inLine(key string, want ...string) {
	c.Helper()
	trial.Await(c.TB, func() error {
		if got := c.line(key); !slices.Equal(got, want) {
			return fmt.Errorf("in line of %s: got %q, want %q", key, got, want)
		}
		return nil
	})
}

// info is the figures of a semaphore.
func (c client) info(key string) map[string]int64 {
	c.Helper()
	reply := c.do("SEM.INFO", key)
	pairs, ok := reply.([]any)
	if !ok {
		return nil // an error, which the caller sees by what is missing
	}
	figures := map[string]int64{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if n, isNumber := pairs[i+1].(int64); isNumber {
			figures[fmt.Sprint(pairs[i])] = n
		}
	}
	return figures
}
