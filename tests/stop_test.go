package tests

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
)

func TestGracefulStopAnswersWaitersAndKeepsGrants(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	n := startOn(t, "127.0.0.1:0", data)
	a := dial(t, n)
	a.want("OK", "SEM.CREATE", "pool", 2, "MAXHOLD", 900000)
	began := time.Now()
	kept := a.acquire("pool", "HOLDER", "kept", "LEASE", 600000)
	a.acquire("pool", "HOLDER", "released")
	a.want(1, "SEM.RELEASE", "pool", "released")
	second := a.acquire("pool", "HOLDER", "second", "LEASE", 600000)
	line := make([]*client, 20)
	for i := range line {
		line[i] = dial(t, n)
		line[i].send("SEM.ACQUIRE", "pool", "HOLDER", fmt.Sprint("w", i), "WAIT", 600000)
	}
	joined(t, a, "pool", int64(len(line)))

	stop(t, n)
	for _, w := range line {
		w.refused("SHUTDOWN")
		if _, err := w.Receive(patience); err != io.EOF {
			t.Fatalf("after SHUTDOWN: got %v, want the connection closed", err)
		}
	}
	if c, err := net.Dial("tcp", n.Addr); err == nil {
		_ = c.Close()
		t.Fatal("a stopped node accepts connections")
	}

	n = startOn(t, n.Addr, data)
	defer stop(t, n)
	a = dial(t, n)
	if err := a.books("pool", 2, 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []grant{kept, second} {
		got := a.acquire("pool", "HOLDER", want.holder)
		if got.token != want.token || got.slot != want.slot || !got.replayed {
			t.Errorf("after the restart: got %+v, want %+v again", got, want)
		}
		if least := 600000 - time.Since(began).Milliseconds() - 1; got.leased < least {
			t.Errorf("lease after the restart: got %d ms, want at least %d", got.leased, least)
		}
	}
	a.want(1, "SEM.RELEASE", "pool", "kept")
	if g := a.acquire("pool", "HOLDER", "later"); g.token <= second.token || g.slot != kept.slot {
		t.Errorf("grant after the restart: got %+v, want a larger token than %d in slot %d", g, second.token, kept.slot)
	}
}

// TestLeasesRunOnOverARestart checks that a stop neither ends a lease early nor keeps it for ever.
func TestLeasesRunOnOverARestart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	n := startOn(t, "127.0.0.1:0", data)
	a := dial(t, n)
	a.want("OK", "SEM.CREATE", "pool", 1)
	began := time.Now()
	old := a.acquire("pool", "HOLDER", "a", "LEASE", 1500)
	kill(t, n)

	n = startOn(t, n.Addr, data)
	defer stop(t, n)
	b := dial(t, n)
	g := b.acquire("pool", "HOLDER", "b", "WAIT", 60000)
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("the next holder came after %v of a lease of 1.5s", took)
	}
	if g.token <= old.token {
		t.Errorf("token: got %d, want more than %d", g.token, old.token)
	}
}

func TestEverySignalThatAsksForAStopIsHeeded(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			n := startOn(t, "127.0.0.1:0", t.TempDir())
			w := dial(t, n)
			w.want("OK", "SEM.CREATE", "pool", 0)
			w.send("SEM.ACQUIRE", "pool", "WAIT", 600000)
			joined(t, dial(t, n), "pool", 1)

			if err := n.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}

			w.refused("SHUTDOWN")
			select {
			case <-n.Exited():
			case <-time.After(patience):
				t.Error("the node did not stop")
			}
			stop(t, n) // which checks the exit status
		})
	}
}

// heeded is how long a node is watched that must not end: one that heeds a signal is gone by then, and one
// that ignores it gives no sign. A slow machine can only hide a failure.
const heeded = 200 * time.Millisecond

// TestIgnoredHangupStaysIgnored starts a node as nohup does.
func TestIgnoredHangupStaysIgnored(t *testing.T) {
	t.Parallel()
	nohup := filepath.Join(t.TempDir(), "nohup")
	script := fmt.Sprintf("#!/bin/sh\ntrap '' HUP\nexec %s \"$@\"\n", binary)
	if err := os.WriteFile(nohup, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(nohup, "127.0.0.1:0", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, n)

	if err := n.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}

	select {
	case <-n.Exited():
		t.Error("SIGHUP ended a node that was told to ignore it")
	case <-time.After(heeded):
	}
	dial(t, n).want("PONG", "PING")
}
