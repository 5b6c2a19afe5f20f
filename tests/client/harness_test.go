package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/proxy"
)

// binary is the server, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "semserver-client-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if binary, err = node.Build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// bench is a server and an observer of it.
type bench struct {
	*testing.T
	node *node.Node
	look *resp.Conn
}

func newBench(t *testing.T, flags ...string) *bench {
	t.Helper()
	n, err := node.Start(binary, "127.0.0.1:0", t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	look, err := resp.Dial(n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = look.Close() })
	return &bench{t, n, look}
}

// do sends a command as the observer.
func (b *bench) do(args ...any) any {
	b.Helper()
	reply, err := b.look.Do(args...)
	if err != nil {
		b.Fatalf("%v: %v", args, err)
	}
	if e, ok := reply.(resp.Error); ok {
		b.Fatalf("%v: got %v, want it done", args, e)
	}
	return reply
}

// info is a figure of SEM.INFO.
func (b *bench) info(name, figure string) int64 {
	b.Helper()
	fields, ok := b.do("SEM.INFO", name).([]any)
	for i := 0; ok && i+1 < len(fields); i += 2 {
		if fields[i] == figure {
			return fields[i+1].(int64)
		}
	}
	b.Fatalf("SEM.INFO %s: no %s in %v", name, figure, fields)
	return 0
}

// holds checks that the server knows a permit's grant as live.
func (b *bench) holds(p *client.Permit) {
	b.Helper()
	if got := b.do("SEM.CHECK", p.Name(), p.Holder(), p.Token()); got != int64(1) {
		b.Errorf("SEM.CHECK: got %v, want 1: the grant is live", got)
	}
}

// head is the first row of the line, which must not be empty.
func (b *bench) head(name string) []any {
	b.Helper()
	rows := b.do("SEM.WAITERS", name).([]any)[1].([]any)
	if len(rows) == 0 {
		b.Fatalf("SEM.WAITERS %s: got nobody, want somebody", name)
	}
	return rows[0].([]any)
}

// want waits until a figure is as it should be.
func (b *bench) want(name, figure string, want int64) {
	b.Helper()
	trial.Await(b, func() error {
		if got := b.info(name, figure); got != want {
			return fmt.Errorf("%s of %s: got %d, want %d", figure, name, got, want)
		}
		return nil
	})
}

// client makes a client of these addresses, or of the server. It is closed at the end.
func (b *bench) client(addrs ...string) *client.Client {
	b.Helper()
	if len(addrs) == 0 {
		addrs = []string{b.node.Addr}
	}
	return b.configured(client.Config{Addrs: addrs})
}

func (b *bench) configured(config client.Config) *client.Client {
	b.Helper()
	c, err := client.New(config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Errorf("close: %v", err)
		}
	})
	return c
}

// proxy stands before the server for the length of the test.
func (b *bench) proxy() *proxy.Proxy {
	b.Helper()
	p, err := proxy.Start(b.node.Addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.Errorf("close the proxy: %v", err)
		}
	})
	return p
}

// acquire gets a permit, which the test must be able to.
func (b *bench) acquire(c *client.Client, name string, options ...client.Option) *client.Permit {
	b.Helper()
	p, err := c.Acquire(context.Background(), name, options...)
	if err != nil {
		b.Fatalf("acquire %s: %v", name, err)
	}
	return p
}

// pending is an Acquire under way.
type pending struct {
	permit *client.Permit
	err    error
	done   chan struct{}
}

// start begins an Acquire. It returns before that is answered.
func (b *bench) start(ctx context.Context, c *client.Client, name string, options ...client.Option) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.permit, p.err = c.Acquire(ctx, name, options...)
	}()
	return p
}

// answer waits for it.
func (b *bench) answer(p *pending) (*client.Permit, error) {
	b.Helper()
	b.wait(p.done, "the answer to an Acquire")
	return p.permit, p.err
}

// wait waits for a channel to be closed.
func (b *bench) wait(c <-chan struct{}, what string) {
	b.Helper()
	select {
	case <-c:
	case <-time.After(trial.Patience):
		b.Fatalf("%s did not come within %v", what, trial.Patience)
	}
}

// release gives a permit back, which must be held.
func (b *bench) release(p *client.Permit) {
	b.Helper()
	if err := p.Release(); err != nil {
		b.Errorf("release: %v", err)
	}
}

// lost waits until a permit is lost, and checks why.
func (b *bench) lost(p *client.Permit, reason error) {
	b.Helper()
	b.wait(p.Context().Done(), "the end of the permit's context")
	var lost *client.LostError
	cause := context.Cause(p.Context())
	if !errors.As(cause, &lost) || !errors.Is(cause, reason) {
		b.Errorf("cause: got %v, want a LostError for %v", cause, reason)
	}
	if err := p.Err(); !errors.Is(err, reason) {
		b.Errorf("Err: got %v, want %v", err, reason)
	}
	if err := p.Release(); !errors.As(err, &lost) {
		b.Errorf("release: got %v, want a LostError", err)
	}
}
