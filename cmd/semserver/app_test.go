package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semserver/semserver/admin"
	"github.com/semserver/semserver/internal/trial"
)

// openApp opens a node with a data directory of its own and free ports.
func openApp(t *testing.T, args ...string) *app {
	t.Helper()
	args = append([]string{
		"--data-dir", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
	}, args...)
	a, err := open(mustParse(t, nil, args...), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestOpenedAppClosesWithoutHavingRun(t *testing.T) {
	a := openApp(t)

	if err := a.close(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestBrokenListenerStopsTheNode(t *testing.T) {
	a := openApp(t)

	_ = a.listeners.http.Close()

	if err := a.run(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want net.ErrClosed", err)
	}
}

func TestEngineThatIsNotOpenIsNotReady(t *testing.T) {
	var e engine

	if err := e.Ready(); err == nil || !strings.Contains(err.Error(), "opening") {
		t.Errorf("got %v, want the reason", err)
	}
	var _ admin.Engine = &e
}

func TestReadinessEndsFirst(t *testing.T) {
	a := openApp(t)
	addr := a.listeners.http.Addr().String()
	waitReady(t, a)

	a.admin.Leave()

	if status, body := httpGet(t, addr, "/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: got %d %q, want 503", status, body)
	}
	if got := ping(t, "tcp", a.listeners.tcp.Addr().String()); got != "+PONG\r\n" {
		t.Errorf("PING while leaving: got %q, want +PONG", got)
	}
	if err := a.close(); err != nil {
		t.Errorf("close: got %v, want nil", err)
	}
}

// waitReady asks until the engine is ready.
func waitReady(t *testing.T, a *app) {
	t.Helper()
	trial.Await(t, a.engine.Ready)
}

func TestSurprisesAreWarnedOf(t *testing.T) {
	password := file(t, "p", "secret")
	for _, c := range []struct {
		args []string
		want string // in the log; empty: no warning
	}{
		{nil, ""},
		{[]string{"--listen=0.0.0.0:0"}, "are refused"},
		{[]string{"--listen=0.0.0.0:0", "--protected-mode=no"}, "anybody"},
		{[]string{"--listen=0.0.0.0:0", "--password-file", password}, ""},
	} {
		var log bytes.Buffer
		a := openApp(t, c.args...)
		a.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))

		a.warn()

		if got := log.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: got %q, want a warning with %q", c.args, got, c.want)
		}
		if err := a.close(); err != nil {
			t.Errorf("close: got %v, want nil", err)
		}
	}
}

func TestVariablesWithoutEffectAreWarnedOfInOneLine(t *testing.T) {
	var log bytes.Buffer
	a := &app{cfg: mustParse(t, environment{"SEMSERVER_MAX_CLIENT": "5", "SEMSERVER_WAIT": "1s"})}
	a.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))

	a.warn()

	got := log.String()
	if !strings.Contains(got, "SEMSERVER_MAX_CLIENT SEMSERVER_WAIT") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line that names both", got)
	}
}

func TestSocketOfADeadProcessIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()

	l, err := bindUnix(path)
	if err != nil {
		t.Fatalf("got %v, want the socket", err)
	}
	defer func() { _ = l.Close() }()

	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Mode().Perm(); got != socketMode {
		t.Errorf("mode: got %o, want %o", got, socketMode)
	}
}

func TestSocketOfALivingProcessIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	living, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = living.Close() }()

	if _, err := bindUnix(path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want that it is in use", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the socket: got %v, want it still there", err)
	}
}

func TestBindingIsAllOrNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")

	_, err := listen(addressFlags{Listen: "127.0.0.1:0", Unix: path, HTTP: "256.0.0.1:1"})

	if err == nil || !strings.Contains(err.Error(), "--http") {
		t.Fatalf("got %v, want an error that names --http", err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the unix socket: got %v, want it gone", err)
	}
}

func TestDurationsAreWrittenShort(t *testing.T) {
	for text, want := range map[string]string{
		"3600s": "1h", "5400s": "1h30m", "90s": "1m30s", "600s": "10m", "10s": "10s", "0s": "0s", "300ms": "300ms", "24h10s": "24h0m10s",
	} {
		c := mustParse(t, map[string]string{"SEMSERVER_IDLE_TIMEOUT": text})
		if got := short(c.Wire.IdleTimeout); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
