package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/internal/version"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// program is a running run.
type program struct {
	t      *testing.T
	cancel context.CancelFunc
	log    io.Reader // one JSON object a line
	status chan int
}

// start runs the program with a data directory of its own and free ports, and the log as JSON.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	args = append([]string{
		"--data-dir", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-format", "json",
	}, args...)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	p := &program{t: t, cancel: cancel, log: r, status: make(chan int, 1)}
	go func() {
		p.status <- run(ctx, args, environment(nil), io.Discard, w)
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, p.log)
	})
	return p
}

// entry is what the tests look at in a line of the log.
type entry struct {
	Level, Msg, Listen, Unix, HTTP, Error string
}

// await reads the log until a line says msg, and returns it.
func (p *program) await(msg string) entry {
	p.t.Helper()
	lines := bufio.NewScanner(p.log)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			p.t.Fatalf("log line %q: got %v, want JSON", lines.Text(), err)
		}
		if e.Msg == msg {
			go func() { _, _ = io.Copy(io.Discard, p.log) }()
			return e
		}
	}
	p.t.Fatalf("the program ended with status %d before it logged %q", <-p.status, msg)
	return entry{}
}

// stop ends the program as a signal would, and returns its exit status.
func (p *program) stop() int {
	p.t.Helper()
	p.cancel()
	select {
	case status := <-p.status:
		return status
	case <-time.After(patience):
		p.t.Fatal("the program did not stop")
		return -1
	}
}

// ping returns the answer to an inline PING.
func ping(t *testing.T, network, addr string) string {
	t.Helper()
	c, err := net.DialTimeout(network, addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func httpGet(t *testing.T, addr, path string) (status int, body string) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestReadyLineNamesAddressesThatAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := start(t, "--unix", socket)

	ready := p.await("ready")

	if got := ping(t, "tcp", ready.Listen); got != "+PONG\r\n" {
		t.Errorf("PING over tcp: got %q, want +PONG", got)
	}
	if ready.Unix != socket {
		t.Errorf("unix: got %q, want %q", ready.Unix, socket)
	}
	if got := ping(t, "unix", socket); got != "+PONG\r\n" {
		t.Errorf("PING over the unix socket: got %q, want +PONG", got)
	}
	for _, path := range []string{"/readyz", "/livez", "/metrics"} {
		if status, body := httpGet(t, ready.HTTP, path); status != 200 {
			t.Errorf("%s: got %d %q, want 200", path, status, body)
		}
	}
	if got := p.stop(); got != exitOK {
		t.Errorf("exit status: got %d, want %d", got, exitOK)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the unix socket after the stop: got %v, want it removed", err)
	}
}

func TestMetricsCarryEveryPart(t *testing.T) {
	p := start(t)
	_, body := httpGet(t, p.await("ready").HTTP, "/metrics")

	for _, want := range []string{"semserver_build{", "semserver_commit_seconds_count", "semserver_waiters ", "go_goroutines ", "semserver_connections"} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	p.stop()
}

func TestEverythingButOneListenerCanBeOff(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := start(t, "--listen=", "--http=", "--unix", socket)

	ready := p.await("ready")

	if ready.Listen != "" || ready.HTTP != "" {
		t.Errorf("got listen %q and http %q, want both off", ready.Listen, ready.HTTP)
	}
	if got := ping(t, "unix", socket); got != "+PONG\r\n" {
		t.Errorf("PING: got %q, want +PONG", got)
	}
	if got := p.stop(); got != exitOK {
		t.Errorf("exit status: got %d, want %d", got, exitOK)
	}
}

func TestBadConfigurationIsOneLineStatusTwoAndTouchesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{
		{"--no-such-flag"}, {"--hold=5"}, {"--default-lease=48h"}, {"--config=/nowhere"}, {"--listen=:"}, {"extra"},
	} {
		var stdout, stderr bytes.Buffer

		status := run(context.Background(), append([]string{"--data-dir", dir}, args...), environment(nil), &stdout, &stderr)

		if status != exitUsage {
			t.Errorf("%q: got status %d, want %d", args, status, exitUsage)
		}
		if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "semserver: ") {
			t.Errorf("%q: got %q, want one line", args, got)
		}
		if stdout.Len() != 0 {
			t.Errorf("%q: got %q on stdout, want nothing", args, stdout.String())
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory: got %v, want it not made", err)
	}
}

func TestPagesGoToStdout(t *testing.T) {
	for _, c := range []struct {
		arg  string
		want []string
	}{
		{"--help", []string{"Usage: semserver", "--max-clients=N", "(default: 20000)", "SEMSERVER_"}},
		{"-h", []string{"Usage: semserver"}},
		{"--version", []string{"semserver " + version.Name() + "\n"}},
	} {
		var stdout, stderr bytes.Buffer

		status := run(context.Background(), []string{c.arg}, environment(nil), &stdout, &stderr)

		if status != exitOK || stderr.Len() != 0 {
			t.Errorf("%s: got status %d and %q on stderr, want %d and nothing", c.arg, status, stderr.String(), exitOK)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s lacks %q", c.arg, want)
			}
		}
	}
}

func TestFailuresToStartAreStatusOneAndNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	plain := file(t, "plain", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", taken.Addr().String()}, "--listen"},
		{[]string{"--http", taken.Addr().String()}, "--http"},
		{[]string{"--unix", plain}, "not a socket"},
		{[]string{"--unix", "/nowhere/s"}, "--unix"},
		{[]string{"--data-dir", plain}, "data directory"},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			p := start(t, c.args...)

			e := p.await("stopped by a failure")

			if !strings.Contains(e.Error, c.want) {
				t.Errorf("got %q, want it to contain %q", e.Error, c.want)
			}
			if got := <-p.status; got != exitFailure {
				t.Errorf("exit status: got %d, want %d", got, exitFailure)
			}
		})
	}
}

func TestOneDirectoryServesOneNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shared")
	first := start(t, "--data-dir", dir)
	first.await("ready")

	second := start(t, "--data-dir", dir)

	if e := second.await("stopped by a failure"); !strings.Contains(e.Error, "in use") {
		t.Errorf("got %q, want it to say that the directory is in use", e.Error)
	}
	if got := <-second.status; got != exitFailure {
		t.Errorf("exit status of the second: got %d, want %d", got, exitFailure)
	}
	if got := first.stop(); got != exitOK {
		t.Errorf("exit status of the first: got %d, want %d", got, exitOK)
	}
	again := start(t, "--data-dir", dir)
	again.await("ready")
}
