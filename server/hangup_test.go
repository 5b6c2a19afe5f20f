package server

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

func grantOf(holder string, token int) string {
	return fmt.Sprintf("*5\r\n$%d\r\n%s\r\n:%d\r\n:0\r\n:30000\r\n:0\r\n", len(holder), holder, token)
}

// full is a semaphore k of one permit, held by "a".
func full(t testing.TB, change ...func(*Config)) (*rig, *client) {
	r := start(t, change...)
	c := r.dial(t)
	c.send("SEM.CREATE k 1").want("+OK\r\n")
	c.send("SEM.ACQUIRE k HOLDER a").want(grantOf("a", 1))
	return r, c
}

func TestWaiterIsAnsweredWhenItsTurnComes(t *testing.T) {
	r, a := full(t)
	b := r.dial(t).send("SEM.ACQUIRE k HOLDER b WAIT 9000")
	r.waits(t, "k", 1, 1)
	a.send("SEM.RELEASE k a").want(":1\r\n")
	b.want(grantOf("b", 2))
}

func TestWaiterLeavesTheLineWhenItsClientIsGone(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn){
		"close":      func(c *net.TCPConn) { c.Close() },
		"reset":      func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
		"half-close": func(c *net.TCPConn) { c.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := full(t)
			b := r.dial(t).send("SEM.ACQUIRE k HOLDER b WAIT 60000")
			r.waits(t, "k", 1, 1)
			leave(b.Conn.(*net.TCPConn))
			r.waits(t, "k", 1, 0)
			if name == "half-close" {
				b.want("*-1\r\n")
				b.ended()
			}
		})
	}
}

// The watch and the connection that is about to write a grant look at the socket at the same time.
func TestGrantIsToldWhileTheWatchProbes(t *testing.T) {
	r, a := full(t, func(c *Config) { c.Wire.ReadAhead = 1024 })
	r.probeEvery = 20 * time.Microsecond
	for i := range 50 {
		holder := fmt.Sprint("b", i)
		b := r.dial(t).send("SEM.ACQUIRE k HOLDER " + holder + " WAIT 60000")
		r.waits(t, "k", 1, 1)
		b.raw(strings.Repeat(request("PING"), 100))
		a.send("SEM.RELEASE k a").want(":1\r\n")
		if got := b.reply(); !strings.HasPrefix(got, "*5") {
			t.Fatalf("got %q, want a grant", got)
		}
		b.Close()
		a.send("SEM.RELEASE k " + holder).want(":1\r\n")
		a.do("SEM.ACQUIRE", "k", "HOLDER", "a")
	}
}

func TestHangUpIsNoticedBehindReadAhead(t *testing.T) {
	r, _ := full(t, func(c *Config) { c.Wire.ReadAhead = 1024 })
	b := r.dial(t).send("SEM.ACQUIRE k HOLDER b WAIT 60000")
	r.waits(t, "k", 1, 1)
	b.raw(strings.Repeat(request("PING"), 1000))
	b.Close()
	r.waits(t, "k", 1, 0)
}

func TestGrantThatRacesWithHangUpIsGivenBack(t *testing.T) {
	for _, reset := range []bool{false, true} {
		r, a := full(t)
		for i := range 100 {
			b := r.dial(t).send(fmt.Sprintf("SEM.ACQUIRE k HOLDER b%d WAIT 60000", i))
			r.waits(t, "k", 1, 1)
			if reset {
				b.Conn.(*net.TCPConn).SetLinger(0)
			}
			b.Close()
			a.send("SEM.RELEASE k a").want(":1\r\n")
			r.waits(t, "k", 0, 0)
			a.do("SEM.ACQUIRE k HOLDER a")
		}
	}
}

func TestImmediateGrantIsGivenBackWhenTheClientIsGone(t *testing.T) {
	r := start(t)
	a := r.dial(t)
	a.send("SEM.CREATE k 5").want("+OK\r\n")
	block, entered := make(chan struct{}), make(chan struct{}, 1)
	r.fake.before = func() { entered <- struct{}{}; <-block }
	b := r.dial(t).send("SEM.ACQUIRE k HOLDER b")
	<-entered
	b.Close()
	close(block)
	trial.Until(t, "b's grant is given back", func() bool {
		r.fake.mu.Lock()
		defer r.fake.mu.Unlock()
		return slices.Equal(r.fake.givenBack, []string{"b"})
	})
	r.waits(t, "k", 0, 0)
}

func TestHalfClosedClientGetsNullInPlaceOfEachGrant(t *testing.T) {
	r := start(t)
	a := r.dial(t)
	a.send("SEM.CREATE k 5").want("+OK\r\n")
	a.send("SEM.ACQUIRE k HOLDER held").want(grantOf("held", 1))
	block, entered := make(chan struct{}), make(chan struct{}, 9)
	r.fake.before = func() { entered <- struct{}{}; <-block }
	b := r.dial(t).raw(request("PING") + request("SEM.ACQUIRE k HOLDER b") + request("SEM.ACQUIRE k HOLDER held") + request("SEM.ACQUIRE k HOLDER c") + request("ECHO x"))
	<-entered
	b.Conn.(*net.TCPConn).CloseWrite()
	close(block)
	b.want("+PONG\r\n*-1\r\n*5\r\n$4\r\nheld\r\n:1\r\n:0\r\n:30000\r\n:1\r\n*-1\r\n$1\r\nx\r\n")
	b.ended()
	r.waits(t, "k", 1, 0)
}

// pipe connects by a connection that has no file descriptor to ask.
func (r *rig) pipe(t testing.TB) *client {
	here, there := net.Pipe()
	go r.ServeConn(there)
	return newClient(t, here)
}

func TestGrantOfWhichNoByteWasWrittenIsGivenBack(t *testing.T) {
	r := start(t)
	a := r.pipe(t)
	a.send("SEM.CREATE k 5").want("+OK\r\n")
	a.send("SEM.ACQUIRE k HOLDER told")
	a.want("*5")
	a.Close()
	b := r.pipe(t)
	b.send("SEM.ACQUIRE k HOLDER untold")
	r.waits(t, "k", 2, 0)
	b.Close()
	r.waits(t, "k", 1, 0)
	if got, want := r.fake.givenBack, []string{"untold"}; !slices.Equal(got, want) {
		t.Errorf("given back %v, want %v", got, want)
	}
}

func TestPipeWaiterLeavesTheLineWhenClosed(t *testing.T) {
	r, _ := full(t)
	b := r.pipe(t).send("SEM.ACQUIRE k HOLDER b WAIT 60000")
	r.waits(t, "k", 1, 1)
	b.Close()
	r.waits(t, "k", 1, 0)
}

func TestCommandsBehindAWaitingOneKeepTheirOrder(t *testing.T) {
	r, a := full(t)
	b := r.dial(t).raw(request("PING") + request("SEM.ACQUIRE k HOLDER b WAIT 9000") + request("ECHO after"))
	b.want("+PONG\r\n")
	r.waits(t, "k", 1, 1)
	b.send("SEM.RELEASE k b")
	a.send("SEM.RELEASE k a").want(":1\r\n")
	b.want(grantOf("b", 2) + "$5\r\nafter\r\n:1\r\n")
}

func TestUnblock(t *testing.T) {
	for how, want := range map[string]string{"": "*-1\r\n", " TIMEOUT": "*-1\r\n", " ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"} {
		r, a := full(t)
		b := r.dial(t)
		id := strings.Trim(b.do("CLIENT ID"), ":\r\n")
		a.send("CLIENT UNBLOCK " + id + how).want(":0\r\n")
		b.send("SEM.ACQUIRE k HOLDER b WAIT 60000")
		r.waits(t, "k", 1, 1)
		trial.Until(t, "unblocked", func() bool { return a.do("CLIENT UNBLOCK "+id+how) == ":1\r\n" })
		b.want(want)
		b.send("PING").want("+PONG\r\n")
	}
}

func TestKilledWaiterLeavesTheLine(t *testing.T) {
	r, a := full(t)
	b := r.dial(t)
	id := strings.Trim(b.do("CLIENT ID"), ":\r\n")
	b.send("SEM.ACQUIRE k HOLDER b WAIT 60000")
	r.waits(t, "k", 1, 1)
	a.send("CLIENT KILL ID " + id).want(":1\r\n")
	b.ended()
	r.waits(t, "k", 1, 0)
}

func TestShutdownAnswersEveryWaiter(t *testing.T) {
	r, _ := full(t)
	var waiters []*client
	for i := range 20 {
		waiters = append(waiters, r.dial(t).send(fmt.Sprintf("SEM.ACQUIRE k HOLDER w%d WAIT 60000", i)))
	}
	idle := r.dial(t).send("PING").want("+PONG\r\n") // so it has been accepted
	r.waits(t, "k", 1, 20)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		t.Fatalf("Shutdown: %v", err)
	}
	for _, w := range waiters {
		w.want("-SHUTDOWN the server is stopping; nothing was granted to this request\r\n")
		w.ended()
	}
	if said := idle.ended(); said != "" {
		t.Errorf("idle client was told %q, want nothing", said)
	}
	if h, w := r.fake.held("k"); h != 1 || w != 0 {
		t.Errorf("%d hold and %d wait, want 1 and 0", h, w)
	}
}

func TestShutdownKeepsThePlaceOfAWaiter(t *testing.T) {
	r, _ := full(t)
	r.fake.keepPlaces()
	waiter, gone := r.dial(t), r.dial(t)
	waiter.send("SEM.ACQUIRE k HOLDER stays WAIT 60000")
	gone.send("SEM.ACQUIRE k HOLDER gone WAIT 60000")
	r.waits(t, "k", 1, 2)
	gone.Close()
	r.waits(t, "k", 1, 1) // a hang-up is no stop: its place goes at once

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		t.Fatalf("Shutdown: %v", err)
	}

	waiter.want("-SHUTDOWN the server is stopping; nothing was granted to this request\r\n")
	waiter.ended()
	if h, w := r.fake.held("k"); h != 1 || w != 1 {
		t.Errorf("%d hold and %d wait, want 1 and 1", h, w)
	}
}

func TestShutdownCutsWhoDoesNotRead(t *testing.T) {
	r := start(t, func(c *Config) { c.WriteTimeout = 0; c.MaxOutput = 1 << 10 })
	c := r.dial(t)
	stuck := strings.Repeat(request("ECHO", strings.Repeat("x", 100_000)), 100)
	go c.Write([]byte(stuck))
	trial.Until(t, "the server is stuck in a write", func() bool {
		return r.metrics.commands != nil && value(r.metrics.commands[r.table.byName["echo"].index]) > 3
	})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	r.Shutdown(ctx)
	if n := len(r.clients()); n != 0 {
		t.Errorf("%d connections after Shutdown, want 0", n)
	}
}

func TestManyRacesLoseNoPermit(t *testing.T) {
	r := start(t)
	r.dial(t).send("SEM.CREATE k 3").want("+OK\r\n")
	var wg sync.WaitGroup
	for w := range 8 {
		control := r.dial(t)
		wg.Go(func() {
			for i := range 50 {
				c := r.dial(t)
				h := fmt.Sprintf("w%d-%d", w, i)
				c.send("SEM.ACQUIRE k HOLDER " + h + " WAIT 60000")
				if i%2 == 0 {
					c.reply()
				}
				c.Close()
				// A grant that was told before the close stays, and is released by name.
				control.do("SEM.RELEASE k " + h)
			}
		})
	}
	wg.Wait()
	r.waits(t, "k", 0, 0)
}

func TestCancelledWaitsLeaveNothingBehind(t *testing.T) {
	r, a := full(t)
	before := runtime.NumGoroutine()
	for i := range 300 {
		c := r.dial(t).send(fmt.Sprintf("SEM.ACQUIRE k HOLDER w%d WAIT 60000", i))
		if i%3 == 0 {
			r.waits(t, "k", 1, 1)
		}
		c.Close()
		r.waits(t, "k", 1, 0)
	}
	trial.Until(t, "goroutines and connections are as before", func() bool {
		return runtime.NumGoroutine() <= before && len(r.clients()) == 1 && value(r.metrics.waiting) == 0
	})
	a.send("SEM.RELEASE k a").want(":1\r\n")
}
