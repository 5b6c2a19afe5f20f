package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/internal/trial"
)

// slowEngine answers when it is told to.
type slowEngine struct{ asked, answer chan struct{} }

func newSlowEngine() *slowEngine {
	return &slowEngine{asked: make(chan struct{}, 100), answer: make(chan struct{})}
}

func (e *slowEngine) Ready() error {
	e.asked <- struct{}{}
	<-e.answer
	return nil
}

func newCapped(e Engine, most int) *Server {
	return New(e, prometheus.NewRegistry(), most, slog.New(slog.DiscardHandler))
}

// ask sends a request and returns its connection.
func ask(t *testing.T, addr, path string) net.Conn {
	t.Helper()
	c := dial(t, addr)
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return c
}

// status reads the answer to the end of the connection, and returns its status.
func status(c net.Conn) (int, error) {
	in := bufio.NewReader(c)
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return 0, err
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("after the answer: got %v, want the connection closed", err)
	}
	return r.StatusCode, r.Body.Close()
}

// closed checks that the server closes a connection without an answer.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := c.Read(make([]byte, 1))
	if !errors.Is(err, io.EOF) && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("got %v, want the connection closed", err)
	}
}

func TestConnectionServesOneRequest(t *testing.T) {
	addr := serve(t, newServer(&engine{}, prometheus.NewRegistry()))

	got, err := status(ask(t, addr, "/livez"))

	if got != 200 || err != nil {
		t.Errorf("got %d, %v, want 200", got, err)
	}
}

func TestSilentConnectionsKeepNoProbeOut(t *testing.T) {
	const most = 4
	addr := serve(t, newCapped(&engine{}, most))
	var silent []net.Conn
	for range 5 * most {
		c := dial(t, addr)
		silent = append(silent, c)
		if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\n"); err != nil {
			t.Fatal(err)
		}
	}

	for range 5 * most {
		if got, err := status(ask(t, addr, "/livez")); got != 200 || err != nil {
			t.Fatalf("got %d, %v, want 200", got, err)
		}
	}

	closed(t, silent[0])
}

func TestConnectionBeyondTheCapIsClosedWhileAllOthersAreAnswered(t *testing.T) {
	e := newSlowEngine()
	addr := serve(t, newCapped(e, 2))
	first, second := ask(t, addr, "/readyz"), ask(t, addr, "/readyz")
	<-e.asked
	<-e.asked

	closed(t, dial(t, addr))

	close(e.answer)
	for _, c := range []net.Conn{first, second} {
		if got, err := status(c); got != 200 || err != nil {
			t.Errorf("a request under way: got %d, %v, want 200", got, err)
		}
	}
	if got, err := status(ask(t, addr, "/readyz")); got != 200 || err != nil {
		t.Errorf("when there is room again: got %d, %v, want 200", got, err)
	}
}

func TestShutdownDoesNotWaitForTheSilent(t *testing.T) {
	s := newCapped(&engine{}, 2)
	c := dial(t, serve(t, s))
	trial.Until(t, "the client is seen", func() bool { return s.clients.length() > 0 })
	began := time.Now()

	err := s.Shutdown(context.Background())

	if took := time.Since(began); err != nil || took > 4*time.Second {
		t.Errorf("got %v after %v, want nil at once", err, took)
	}
	closed(t, c)
}

func TestShutdownCutsOffWhoTakesTooLong(t *testing.T) {
	e := newSlowEngine()
	defer close(e.answer)
	s := newCapped(e, 2)
	c := ask(t, serve(t, s), "/readyz")
	<-e.asked
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()

	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("got %v, want nil", err)
	}

	closed(t, c)
}

func (cs *connections) length() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}
