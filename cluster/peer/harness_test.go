package peer

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen; it is not waited for when it does.
const patience = 30 * time.Second

var (
	ourSecret   = []byte("0123456789abcdef0123456789abcdef")
	otherSecret = []byte("0123456789abcdef0123456789abcdeg")
)

// journal is a log that a test can read.
type journal struct{ trial.Journal }

func logTo(j *journal) *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// wants waits until the log says something.
func (j *journal) wants(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() bool { return j.Count(text) > 0 }, func() any { return j.String() }, text)
}

func eventually(t testing.TB, done func() bool, got func() any, want any) {
	t.Helper()
	trial.Await(t, func() error {
		if !done() {
			return fmt.Errorf("got %v, want %v", got(), want)
		}
		return nil
	})
}

// node is a Network and what it has been told.
type node struct {
	*Network
	is      Host
	log     *journal
	greeted chan Greeting // of connections that have been accepted
}

// echo sends back what comes.
func (n *node) echo(c net.Conn, g Greeting) {
	defer c.Close()
	select {
	case n.greeted <- g:
	default:
	}
	_, _ = io.Copy(c, c)
}

var errStranger = errors.New("no stranger is welcome")

func (n *node) hosting(name string) Host {
	return Host{
		Introduce: func() Greeting { return Greeting{Cluster: "c", Node: name, Address: n.Address()} },
		Admit: func(_ Purpose, g Greeting) error {
			if g.Node == "stranger" {
				return errStranger
			}
			return nil
		},
		Handle: map[Purpose]func(net.Conn, Greeting){
			Forward: n.echo,
			Ask:     func(c net.Conn, g Greeting) { Answer(c, patience, answer) },
		},
	}
}

// open listens on loopback; serve must follow.
func open(t testing.TB, name string, cfg Config) *node {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	n := &node{log: &journal{}, greeted: make(chan Greeting, 100)}
	cfg.Logger = logTo(n.log)
	var err error
	if n.Network, err = Listen(cfg); err != nil {
		t.Fatal(err)
	}
	n.is = n.hosting(name)
	return n
}

// serve serves until the test ends.
func (n *node) serve(t testing.TB) {
	n.Serve(n.is)
	t.Cleanup(func() { n.Close() })
}

// start opens and serves a Network.
func start(t testing.TB, name string, cfg Config) *node {
	t.Helper()
	n := open(t, name, cfg)
	n.serve(t)
	return n
}

// talks says whether a connection carries something there and back.
func talks(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		t.Fatalf("got %q, %v, want %q", got, err, "hello")
	}
}

// connectsAtLast waits until a can talk to b.
func connectsAtLast(t *testing.T, a *node, address string) {
	t.Helper()
	var c net.Conn
	var err error
	eventually(t, func() bool {
		c, _, err = a.Dial(t.Context(), address, Forward)
		return err == nil
	}, func() any { return err }, "a connection")
	talks(t, c)
	c.Close()
}

// connects fails the test unless a can talk to b.
func connects(t *testing.T, a *node, address string) {
	t.Helper()
	c, _, err := a.Dial(t.Context(), address, Forward)
	if err != nil {
		t.Fatal(err)
	}
	talks(t, c)
	c.Close()
}

// fails fails the test unless dialing fails, for a reason with such words.
func fails(t *testing.T, a *node, address, reason string) {
	t.Helper()
	c, _, err := a.Dial(t.Context(), address, Forward)
	if err == nil {
		c.Close()
	}
	if err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %v, want %q", err, reason)
	}
}

// empty waits until no connection is counted any more.
func empty(t *testing.T, n *node) {
	t.Helper()
	counts := func() [4]int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return [4]int{len(n.conns), n.established, n.handshakes, len(n.handshakesFrom)}
	}
	eventually(t, func() bool { return counts() == [4]int{} }, func() any { return counts() }, [4]int{})
}

// raw connects without a word.
func raw(t *testing.T, n *node) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ended waits until the other end has closed, and returns what it said before.
func ended(t *testing.T, c net.Conn) string {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	said, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("got %v after %q, want it closed", err, said)
	}
	return string(said)
}
