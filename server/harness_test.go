package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/internal/trial"
)

const patience = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server in front of a fake, on loopback.
type rig struct {
	*Server
	fake *fake
	addr string
}

func testConfig(change ...func(*Config)) Config {
	cfg := DefaultConfig()
	cfg.Logger = slog.New(slog.DiscardHandler)
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// start starts a server that is stopped when the test ends.
func start(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	r := &rig{Server: New(f, testConfig(change...)), fake: f, addr: l.Addr().String()}
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v, want nil", err)
		}
	})
	return r
}

// client is one connection of a test.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (r *rig) dial(t testing.TB) *client {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, c)
}

func newClient(t testing.TB, c net.Conn) *client {
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return &client{Conn: c, t: t, r: bufio.NewReader(c)}
}

// request encodes a command; words are separated by blanks.
func request(words ...string) string {
	if len(words) == 1 {
		words = strings.Fields(words[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func (c *client) raw(s string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.t.Fatalf("write: %v", err)
	}
	return c
}

func (c *client) send(words ...string) *client {
	c.t.Helper()
	return c.raw(request(words...))
}

// want reads exactly the bytes that are expected.
func (c *client) want(want string) *client {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.r, got)
	if string(got[:n]) != want {
		c.t.Fatalf("got %q, want %q (error %v)", got[:n], want, err)
	}
	return c
}

// reply reads one whole reply and returns its bytes.
func (c *client) reply() string {
	c.t.Helper()
	all, err := readReply(c.r)
	if err != nil {
		c.t.Fatalf("read: %v after %q", err, all)
	}
	return all
}

// readReply reads one whole reply in either version of the protocol, and returns its bytes.
func readReply(r *bufio.Reader) (string, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return head, err
	}
	kind, rest := head[0], strings.TrimSuffix(head[1:], "\r\n")
	if strings.ContainsAny(rest, "\r\n") || !strings.HasSuffix(head, "\r\n") {
		return head, fmt.Errorf("bad line %q", head)
	}
	if kind == '+' || kind == '-' || (kind == '_' && rest == "") {
		return head, nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < -1 && kind != ':' {
		return head, fmt.Errorf("bad head %q", head)
	}
	switch kind {
	case ':':
		return head, nil
	case '$', '=':
		return readBulk(r, head, n)
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return head, fmt.Errorf("bad head %q", head)
	}
	all := head
	for range n {
		part, err := readReply(r)
		if all += part; err != nil {
			return all, err
		}
	}
	return all, nil
}

func readBulk(r *bufio.Reader, head string, n int) (string, error) {
	if n < 0 {
		return head, nil
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return head, err
	}
	if string(b[n:]) != "\r\n" {
		return head, fmt.Errorf("bulk ends with %q", b[n:])
	}
	return head + string(b), nil
}

// do sends a command and returns its reply.
func (c *client) do(words ...string) string {
	c.t.Helper()
	return c.send(words...).reply()
}

// ended checks that the server has closed the connection, and returns what it said before.
func (c *client) ended() string {
	c.t.Helper()
	said, err := io.ReadAll(c.r)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.t.Fatalf("connection is still open, said %q", said)
	}
	return string(said)
}

// waits waits until so many hold and wait.
func (r *rig) waits(t testing.TB, key string, holders, waiters int) {
	t.Helper()
	trial.Until(t, fmt.Sprintf("%d hold and %d wait, got %v", holders, waiters, fmt.Sprint(r.fake.held(key))), func() bool {
		h, w := r.fake.held(key)
		return h == holders && w == waiters
	})
}
