package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is ready unless it holds an error.
type engine struct{ err error }

func (e *engine) Ready() error { return e.err }

func newServer(e Engine, g prometheus.Gatherer) *Server {
	return New(e, g, DefaultMaxClients, slog.New(slog.DiscardHandler))
}

func get(t *testing.T, s *Server, method, path string) (status int, body string, header http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, w.Body.String(), w.Header()
}

func TestProbesFollowTheEngine(t *testing.T) {
	down := errors.New("no leader is known")
	for _, c := range []struct {
		path   string
		engine error
		leave  bool
		status int
		body   string
	}{
		{"/livez", nil, false, 200, "ok\n"},
		{"/livez", down, false, 200, "ok\n"},
		{"/livez", nil, true, 200, "ok\n"},
		{"/readyz", nil, false, 200, "ok\n"},
		{"/readyz", down, false, 503, "no leader is known\n"},
		{"/readyz", nil, true, 503, "the server is stopping\n"},
		{"/readyz", down, true, 503, "the server is stopping\n"},
	} {
		t.Run(fmt.Sprintf("%s engine %v leave %v", c.path, c.engine, c.leave), func(t *testing.T) {
			s := newServer(&engine{c.engine}, prometheus.NewRegistry())
			if c.leave {
				s.Leave()
			}

			status, body, header := get(t, s, "GET", c.path)

			if status != c.status || body != c.body {
				t.Errorf("got %d %q, want %d %q", status, body, c.status, c.body)
			}
			if got := header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control: got %q, want no-store", got)
			}
		})
	}
}

func TestReadinessComesBackWithTheEngine(t *testing.T) {
	e := &engine{errors.New("electing")}
	s := newServer(e, prometheus.NewRegistry())
	if status, _, _ := get(t, s, "GET", "/readyz"); status != 503 {
		t.Fatalf("while electing: got %d, want 503", status)
	}

	e.err = nil

	if status, _, _ := get(t, s, "GET", "/readyz"); status != 200 {
		t.Errorf("after the election: got %d, want 200", status)
	}
}

func TestMetricsShowTheGivenRegistry(t *testing.T) {
	r := NewRegistry("v9.8.7")
	grants := prometheus.NewCounter(prometheus.CounterOpts{Name: "test_grants_total", Help: "Grants."})
	grants.Add(3)
	r.MustRegister(grants)

	status, body, _ := get(t, newServer(&engine{}, r), "GET", "/metrics")

	if status != 200 {
		t.Fatalf("got %d, want 200", status)
	}
	for _, want := range []string{
		"\ntest_grants_total 3\n", `semserver_build{version="v9.8.7"} 1`, "\ngo_goroutines ", "\nprocess_open_fds ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
}

func TestOnlyKnownPathsAndReadingMethodsAreServed(t *testing.T) {
	s := newServer(&engine{}, prometheus.NewRegistry())
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"HEAD", "/livez", 200},
		{"POST", "/livez", 405},
		{"DELETE", "/metrics", 405},
		{"GET", "/", 404},
		{"GET", "/debug/pprof/", 404},
	} {
		if status, _, _ := get(t, s, c.method, c.path); status != c.status {
			t.Errorf("%s %s: got %d, want %d", c.method, c.path, status, c.status)
		}
	}
}

// serve runs s on a loopback port and returns its address.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: got %v, want nil", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve after Shutdown: got %v, want nil", err)
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestOversizedHeadersAreRefused(t *testing.T) {
	c := dial(t, serve(t, newServer(&engine{}, prometheus.NewRegistry())))
	// net/http reads 4 KiB more than the limit before it gives up.
	_, _ = fmt.Fprintf(c, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Large: %s\r\n\r\n", strings.Repeat("a", maxHeaderBytes+4<<10))

	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()

	if r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d, want 431", r.StatusCode)
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()

	if err := newServer(&engine{}, prometheus.NewRegistry()).Serve(l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want net.ErrClosed", err)
	}
}
