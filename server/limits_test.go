package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
)

func TestHostileBytesAreRefusedAndNobodyElseNotices(t *testing.T) {
	r := start(t)
	other := r.dial(t)
	for _, h := range hostile {
		c := r.dial(t).raw(h)
		c.CloseWrite(t)
		c.ended()
		other.send("PING").want("+PONG\r\n")
	}
}

func (c *client) CloseWrite(t *testing.T) { c.Conn.(*net.TCPConn).CloseWrite() }

func TestProtocolErrorIsAnsweredBehindWhatCameBefore(t *testing.T) {
	c := start(t).dial(t)
	c.raw(request("SEM.CREATE k 1") + request("SEM.ACQUIRE k HOLDER a") + "*1\r\n$-5\r\n" + strings.Repeat("x", 300_000))
	want := "+OK\r\n" + grantOf("a", 1) + "-ERR Protocol error: invalid bulk length\r\n"
	if got := c.ended(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPipelineReachesTheBackendInRuns(t *testing.T) {
	r := start(t)
	c := r.dial(t)
	c.send("SEM.CREATE k 1000").want("+OK\r\n")
	const n = 600
	c.raw(strings.Repeat(request("SEM.RELEASE k h"), n))
	c.want(strings.Repeat(":0\r\n", n))
	longest, sum := 0, 0
	for _, l := range r.fake.runs() {
		longest, sum = max(longest, l), sum+l
	}
	if sum != n+1 || longest > semaphore.MaxRun || len(r.fake.runs()) > n/4 {
		t.Errorf("%d requests in %d runs of at most %d, want %d in few of at most %d", sum, len(r.fake.runs()), longest, n+1, semaphore.MaxRun)
	}
}

func TestLongPipelineIsTakenBeforeAnyReplyIsRead(t *testing.T) {
	c := start(t).dial(t)
	c.send("SEM.CREATE k 1").want("+OK\r\n")
	c.send("SEM.ACQUIRE k HOLDER a").want(grantOf("a", 1))
	const n = 20_000
	again := strings.TrimSuffix(grantOf("a", 1), ":0\r\n") + ":1\r\n"
	c.raw(strings.Repeat(request("SEM.ACQUIRE k HOLDER a"), n))
	c.want(strings.Repeat(again, n))
}

func TestListingEndsARun(t *testing.T) {
	r := start(t)
	c := r.pipe(t)
	c.send("SEM.CREATE k 1000").want("+OK\r\n")
	go c.raw(strings.Repeat(request("SEM.HOLDERS k"), 20))
	c.want(strings.Repeat("*2\r\n$1\r\n0\r\n*0\r\n", 20))
	for _, l := range r.fake.runs() {
		if l != 1 {
			t.Errorf("a run of %d listings, want 1", l)
		}
	}
}

func TestTooManyClientsAreTurnedAway(t *testing.T) {
	r := start(t, func(c *Config) { c.MaxClients = 2 })
	a, b := r.dial(t), r.dial(t)
	a.send("PING").want("+PONG\r\n")
	b.send("PING").want("+PONG\r\n")
	if got, want := r.dial(t).ended(), "-ERR max number of clients reached\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Close()
	trial.Until(t, "there is room again", func() bool { return len(r.clients()) == 1 })
	r.dial(t).send("PING").want("+PONG\r\n")
}

// foreign is a connection from a distant address.
type foreign struct{ net.Conn }

func (foreign) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 5123} }

// foreigners makes every connection of a listener come from afar.
type foreigners struct{ net.Listener }

func (l foreigners) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return foreign{c}, err
}

func fromAfar(t *testing.T, change ...func(*Config)) *rig {
	r := start(t, change...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	go r.Serve(foreigners{l})
	return r
}

func TestProtectedModeRefusesDistantClients(t *testing.T) {
	said := fromAfar(t).dial(t).ended()
	if !strings.HasPrefix(said, "-DENIED semserver is running in protected mode") {
		t.Errorf("got %q", said)
	}
	fromAfar(t, func(c *Config) { c.Protected = false }).dial(t).send("PING").want("+PONG\r\n")
	fromAfar(t, secret).dial(t).send("AUTH sesame").want("+OK\r\n")
}

func TestAddressesAreCapped(t *testing.T) {
	r := fromAfar(t, secret, func(c *Config) { c.MaxClientsPerAddress = 1 })
	r.dial(t).send("AUTH sesame").want("+OK\r\n")
	if got, want := r.dial(t).ended(), "-ERR max number of clients reached\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// failing is a listener that fails some times, like that of a process out of file descriptors.
type failing struct {
	net.Listener
	left  atomic.Int32
	tries atomic.Int32
}

func (l *failing) Accept() (net.Conn, error) {
	l.tries.Add(1)
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestAcceptBacksOff(t *testing.T) {
	r := start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{Listener: l}
	f.left.Store(4)
	r.addr = l.Addr().String()
	began := time.Now()
	go r.Serve(f)
	r.dial(t).send("PING").want("+PONG\r\n")
	if took, want := time.Since(began), 75*time.Millisecond; took < want {
		t.Errorf("four failures took %v, want pauses of at least %v", took, want)
	}
}

func TestServeReturnsWhenTheListenerIsClosedBySomebodyElse(t *testing.T) {
	r := start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := r.Serve(l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestClientThatNeverReadsIsCut(t *testing.T) {
	r := start(t, func(c *Config) { c.WriteTimeout = 50 * time.Millisecond; c.MaxOutput = 1 << 10 })
	c := r.dial(t)
	stuck := strings.Repeat(request("ECHO", strings.Repeat("x", 100_000)), 1000)
	if _, err := io.WriteString(c.Conn, stuck); err == nil {
		t.Errorf("100 MB of replies were taken from a client that does not read")
	}
	trial.Until(t, "it is gone", func() bool { return len(r.clients()) == 0 })
}

func TestThousandsOfConnectionsOpenedAndDropped(t *testing.T) {
	r := start(t)
	other := r.dial(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 500 {
				c, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Error(err)
					return
				}
				if (i+w)%3 == 0 {
					io.WriteString(c, "*1\r\n$4\r\nPI")
				}
				c.Close()
			}
		})
	}
	for range 100 {
		began := time.Now()
		other.send("PING").want("+PONG\r\n")
		if took := time.Since(began); took > patience/10 {
			t.Errorf("PING took %v meanwhile", took)
		}
	}
	wg.Wait()
	trial.Until(t, "all are gone", func() bool { return len(r.clients()) == 1 })
}

// inBubble runs a test with virtual time on connections without sockets.
func inBubble(t *testing.T, test func(t *testing.T, r *rig), change ...func(*Config)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := &rig{Server: New(f, testConfig(change...)), fake: f}
		test(t, r)
		if err := r.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

func (c *client) patient() *client {
	c.SetDeadline(time.Time{})
	return c
}

func TestHandshakeMustEndInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began := time.Now()
		c := r.pipe(t).patient()
		for range 9 {
			time.Sleep(time.Second)
			c.raw("x")
		}
		c.ended()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("closed after %v, want 10s", took)
		}
	}, func(c *Config) { c.HandshakeTimeout = 10 * time.Second })
}

func TestCommandMustBeSentInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.pipe(t).patient()
		// A pipeline that never comes to rest between commands is in time; a trickle is not.
		c.raw("*1\r\n$4\r\n")
		for range 20 {
			time.Sleep(9 * time.Second)
			c.raw("PING\r\n*1\r\n$4\r\n").want("+PONG\r\n")
		}
		c.raw("PING\r\n").want("+PONG\r\n")
		began := time.Now()
		c.raw("*1\r\n$100\r\n")
		for range 9 {
			time.Sleep(time.Second)
			c.raw("P")
		}
		c.ended()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("closed after %v, want 10s", took)
		}
	}, func(c *Config) { c.HandshakeTimeout = 10 * time.Second })
}

func TestAuthenticationMustEndInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began := time.Now()
		c := r.pipe(t).patient()
		for range 9 {
			time.Sleep(time.Second)
			c.send("PING").want("-NOAUTH Authentication required.\r\n")
		}
		c.ended()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("closed after %v, want 10s", took)
		}
	}, secret, func(c *Config) { c.HandshakeTimeout = 10 * time.Second })
}

func TestIdleConnectionIsClosedAndWaitingIsNotIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := r.pipe(t).patient(), r.pipe(t).patient()
		a.send("SEM.CREATE k 0").want("+OK\r\n")
		began := time.Now()
		b.send("SEM.ACQUIRE k WAIT 3600000").want("*-1\r\n")
		if took := time.Since(began); took != time.Hour {
			t.Errorf("answered after %v, want 1h", took)
		}
		b.ended()
		if took := time.Since(began); took != time.Hour+time.Minute {
			t.Errorf("closed after %v, want 1h1m", took)
		}
		a.ended()
	}, func(c *Config) { c.IdleTimeout = time.Minute })
}

func TestSilentConnectionStaysByDefaultAndKeepsNoBuffer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.pipe(t).patient()
		for range 3 {
			c.send("ECHO", strings.Repeat("x", 100)).want("$100\r\n" + strings.Repeat("x", 100) + "\r\n")
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			for _, s := range r.clients() {
				if s.in.buf != nil || s.out.buf != nil {
					t.Errorf("a silent connection keeps %d + %d bytes of buffer", cap(s.in.buf), cap(s.out.buf))
				}
			}
		}
	})
}
