package peer

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// doorway is a listener without a network: its connections are pipes, from addresses that a test
// chooses, in the time of a synctest bubble.
type doorway struct {
	come   chan net.Conn
	fail   chan error
	closed chan struct{}
	asked  atomic.Int64
}

func newDoorway() *doorway {
	return &doorway{come: make(chan net.Conn), fail: make(chan error), closed: make(chan struct{})}
}

func (d *doorway) Accept() (net.Conn, error) {
	d.asked.Add(1)
	select {
	case c := <-d.come:
		return c, nil
	case err := <-d.fail:
		return nil, err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *doorway) Close() error   { close(d.closed); return nil }
func (d *doorway) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 100), Port: 7361} }

// visitor is the end of a pipe that has been accepted.
type visitor struct {
	net.Conn
	from net.Addr
}

func (v visitor) RemoteAddr() net.Addr { return v.from }

// visit connects from an address and returns the visitor's end.
func (d *doorway) visit(from string) net.Conn {
	theirs, ours := net.Pipe()
	d.come <- visitor{ours, &net.TCPAddr{IP: net.ParseIP(from), Port: 1}}
	synctest.Wait()
	return theirs
}

// serve serves a doorway in a bubble.
func (d *doorway) serve(t *testing.T, cfg Config) *node {
	t.Helper()
	cfg.Listen = "10.0.0.100:7361"
	n := &node{log: &journal{}, greeted: make(chan Greeting, 100)}
	cfg.Logger = logTo(n.log)
	cfg, err := cfg.complete()
	if err != nil {
		t.Fatal(err)
	}
	secure, err := cfg.Security.open(cfg.Listen, "", cfg.Logger)
	if err != nil {
		t.Fatal(err)
	}
	n.Network = newNetwork(cfg, secure, d)
	n.Serve(n.hosting("n"))
	return n
}

func isClosed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func TestHandshakesBeyondTheLimitAreClosedAtOnce(t *testing.T) {
	n := open(t, "n", Config{MaxHandshakes: 4})
	n.patience = time.Hour
	n.serve(t)
	var silent []net.Conn
	for range 4 {
		silent = append(silent, raw(t, n))
	}
	ended(t, raw(t, n))
	n.log.wants(t, `error="4 connections have not introduced themselves yet"`)

	silent[0].Close()
	connectsAtLast(t, start(t, "a", Config{}), n.Address()) // there is room again
}

func TestOneAddressDoesNotGetAllHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorway()
		n := d.serve(t, Config{Security: Security{Plain: true}})
		for _, c := range []struct {
			from         string
			times, admit int
		}{
			{"10.0.0.1", 20, 16}, {"10.0.0.2", 20, 16},
			{"2001:db8::1", 15, 15}, {"2001:db8::2", 3, 1}, // together 16: it is one network
			{"2001:db8:0:1::1", 10, 10}, {"127.0.0.1", 20, 6}, {"10.0.0.3", 1, 0}, // 64 are all
		} {
			admitted := 0
			for range c.times {
				if !isClosed(d.visit(c.from)) {
					admitted++
				}
			}
			if admitted != c.admit {
				t.Errorf("%d connections from %s: got %d, want %d", c.times, c.from, admitted, c.admit)
			}
		}
		n.Close()
		empty(t, n)
	})
}

func TestAHandshakeEndsInTimeHoweverSlowItDrips(t *testing.T) {
	for kind, secure := range map[string]func(t *testing.T) Security{
		"plain":  func(*testing.T) Security { return Security{Plain: true} },
		"secret": func(*testing.T) Security { return Security{Secret: ourSecret} },
		"files":  func(t *testing.T) Security { return newAuthority(t).issue(t, "10.0.0.100") },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoorway()
				n := d.serve(t, Config{Security: secure(t)})
				defer n.Close()
				c := d.visit("10.0.0.1")
				words := "semp\x01f\x0f\x00{                 "
				if kind != "plain" {
					words = "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03              "
				}
				began := time.Now()
				go func() { _, _ = io.Copy(io.Discard, c) }()
				for _, b := range []byte(words) {
					if _, err := c.Write([]byte{b}); err != nil {
						break
					}
					time.Sleep(time.Second)
				}
				if took := time.Since(began); took > handshakeTimeout+time.Second {
					t.Errorf("got %v until it was closed, want %v", took, handshakeTimeout)
				}
				synctest.Wait()
				if !strings.Contains(n.log.String(), "peer has not introduced itself in time") {
					t.Errorf("got %q, want that it was slow", n.log)
				}
				empty(t, n)
			})
		})
	}
}

func TestAcceptDoesNotSpinWhenItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorway()
		n := d.serve(t, Config{Security: Security{Plain: true}})
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case d.fail <- syscall.EMFILE:
				case <-stop:
					return
				}
			}
		}()
		time.Sleep(time.Minute)
		close(stop)
		<-done
		if got := d.asked.Load(); got > 70 {
			t.Errorf("got %d attempts in a minute, want about one a second", got)
		}
		if got := n.log.Count("accept failed"); got < 2 || got > 7 {
			t.Errorf("got %d lines, want about one every 10 s:\n%s", got, n.log)
		}

		time.Sleep(time.Second)
		c := d.visit("10.0.0.1") // it goes on
		d.fail <- syscall.EMFILE
		synctest.Wait()
		began := time.Now()
		n.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("got %v to close, want it not to wait for the pause", took)
		}
		if !isClosed(c) {
			t.Error("got an open connection, want it closed")
		}
	})
}

func TestPeersBeyondTheLimitAreRefused(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{MaxConns: 2})
	var held []net.Conn
	for range 2 {
		c, _, err := a.Dial(t.Context(), b.Address(), Forward)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	fails(t, a, b.Address(), "refused by peer: too many connections between peers: 2")
	b.log.wants(t, `msg="peer turned away" address=127.0.0.1 error="too many connections between peers: 2"`)
	fails(t, b, a.Address(), "too many connections between peers: 2")
	b.log.wants(t, `msg="connection to peer not opened"`)

	held[0].Close()
	connectsAtLast(t, b, a.Address()) // there is room again
	held[1].Close()
	empty(t, a)
	empty(t, b)
}

func TestStrangersDoNotTakeThePlacesOfPeers(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{MaxConns: 1})
	for range 10 {
		raw(t, b)
	}
	eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.handshakes == 10 }, func() any { return 0 }, "10 handshakes")
	connects(t, a, b.Address())
}

func TestAFloodPassesWithoutATrace(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			n := start(t, "n", Config{Security: security, MaxHandshakes: 8})
			var flood sync.WaitGroup
			for i := range 8 {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				flood.Go(func() {
					for range 25 {
						c, err := net.Dial("tcp", n.listener.Addr().String())
						if err != nil {
							t.Error(err)
							return
						}
						words := make([]byte, random.IntN(2000))
						for j := range words {
							words[j] = byte(random.Uint32())
						}
						if random.IntN(2) == 0 {
							copy(words, "semp\x01f\x00")
						}
						_, _ = c.Write(words)
						c.Close()
					}
				})
			}
			flood.Wait()
			connectsAtLast(t, start(t, "a", Config{Security: security}), n.Address())
			empty(t, n)
			if len(n.greeted) != 1 {
				t.Errorf("got %d connections, want only the peer's to reach its handler", len(n.greeted))
			}
			if got := n.log.Count("\n"); got > 3 {
				t.Errorf("got %d lines, want a few:\n%s", got, n.log)
			}
		})
	}
}
