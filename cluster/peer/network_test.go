package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// kinds are the ways in which two nodes can be secured.
func kinds(t testing.TB) map[string]Security {
	ca := newAuthority(t)
	return map[string]Security{
		"plain":  {},
		"secret": {Secret: ourSecret},
		"files":  ca.issue(t, "127.0.0.1"),
	}
}

func TestBothEndsLearnWhoTheOtherIs(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "a", Config{Security: security}), start(t, "b", Config{Security: security})

			c, who, err := a.Dial(t.Context(), b.Address(), Forward)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			talks(t, c)

			if want := (Greeting{"c", "b", b.Address()}); who != want {
				t.Errorf("dialed: got %v, want %v", who, want)
			}
			if got, want := <-b.greeted, (Greeting{"c", "a", a.Address()}); got != want {
				t.Errorf("accepted: got %v, want %v", got, want)
			}
		})
	}
}

func TestConnectionsAreForgottenWhenTheyClose(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "a", Config{Security: security}), start(t, "b", Config{Security: security})
			stranger := start(t, "stranger", Config{Security: security})
			for range 3 {
				connects(t, a, b.Address())
				fails(t, a, b.Address()+"0", "port") // no such port
				fails(t, stranger, b.Address(), "no stranger is welcome")
			}
			raw(t, b).Close()

			empty(t, a)
			empty(t, b)
			empty(t, stranger)
		})
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "stranger", Config{Security: security}), start(t, "b", Config{Security: security})
			for range 5 {
				_, _, err := a.Dial(t.Context(), b.Address(), Forward)
				var refused *Refused
				if !errors.As(err, &refused) || refused.Reason != errStranger.Error() {
					t.Fatalf("got %v, want refused: %v", err, errStranger)
				}
			}
			b.log.wants(t, `msg="peer turned away" address=127.0.0.1 error="no stranger is welcome"`)
			a.log.wants(t, `msg="peer refuses this node" address=`+b.Address())
			if got := b.log.Count("\n") + a.log.Count("\n"); got != 2 {
				t.Errorf("got %d lines, want one at each end:\n%s%s", got, a.log, b.log)
			}
		})
	}
}

// As a host may that is closing, or has itself lost a connection.
func TestEveryReasonOfTheHostIsTold(t *testing.T) {
	a, b := start(t, "a", Config{}), open(t, "b", Config{})
	b.is.Admit = func(Purpose, Greeting) error { return fmt.Errorf("ask the leader: %w", net.ErrClosed) }
	b.serve(t)
	fails(t, a, b.Address(), "refused by peer: ask the leader: use of closed network connection")
}

func TestAnUnknownPurposeIsRefused(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{})
	_, _, err := a.Dial(t.Context(), b.Address(), Raft)
	if want := `refused by peer: unknown purpose 'r'`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAnotherVersionOfTheProtocolIsToldSo(t *testing.T) {
	b := start(t, "b", Config{})
	c := raw(t, b)
	fmt.Fprintf(c, "%s\x02f", magic)

	_, err := readAnswer(strings.NewReader(ended(t, c)))

	if want := "peer speaks version 2 of the protocol, this node version 1"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTheAddressOfANodeIsWhatItAdvertises(t *testing.T) {
	for _, c := range []struct{ listen, advertise, want string }{
		{"127.0.0.1:0", "", "127.0.0.1:%s"},
		{"localhost:0", "", "localhost:%s"},
		{"127.0.0.1:0", "localhost:7361", "localhost:7361"},
	} {
		n := start(t, "n", Config{Listen: c.listen, Advertise: c.advertise})
		_, port, _ := net.SplitHostPort(n.listener.Addr().String())
		want := strings.ReplaceAll(c.want, "%s", port)
		if got := n.Address(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCloseEndsHandshakesDialsAndHandlers(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := open(t, "a", Config{Security: security}), open(t, "b", Config{Security: security})
			a.patience, b.patience = time.Hour, time.Hour
			a.serve(t)
			b.serve(t)
			silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts and says nothing
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			failed := make(chan error, 1)
			go func() {
				_, _, err := a.Dial(context.Background(), silent.Addr().String(), Forward)
				failed <- err
			}()
			held, err := silent.Accept() // the dial is under way
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			c, _, err := a.Dial(t.Context(), b.Address(), Forward)
			if err != nil {
				t.Fatal(err)
			}
			stranger := raw(t, b)
			eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.handshakes == 1 }, func() any { return 0 }, "a handshake")

			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}

			if err := <-failed; !errors.Is(err, net.ErrClosed) {
				t.Errorf("dial: got %v, want %v", err, net.ErrClosed)
			}
			ended(t, stranger)
			if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("write: got %v, want %v", err, net.ErrClosed)
			}
			empty(t, a)
			empty(t, b)
			if got := a.log.String() + b.log.String(); got != "" {
				t.Errorf("got %q, want nothing logged", got)
			}
		})
	}
}

func TestAClosedNetworkOpensNothing(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{})
	for range 2 {
		if err := a.Close(); err != nil {
			t.Errorf("got %v, want it closed", err)
		}
	}
	if _, _, err := a.Dial(t.Context(), b.Address(), Forward); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

// briefHandshake is the time for a handshake where a test has to outlast it. The deadlines of real sockets
// come in real time.
const briefHandshake = 300 * time.Millisecond

// What bounds the handshake must not end the connection.
func TestAConnectionOutlivesTheTimeOfAHandshake(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := open(t, "a", Config{Security: security}), open(t, "b", Config{Security: security})
			a.patience, b.patience = briefHandshake, briefHandshake
			a.serve(t)
			b.serve(t)
			var c net.Conn
			var err error
			eventually(t, func() bool {
				c, _, err = a.Dial(t.Context(), b.Address(), Forward)
				return err == nil
			}, func() any { return err }, "a connection")
			defer c.Close()
			talks(t, c)
			time.Sleep(2 * briefHandshake)
			talks(t, c)
		})
	}
}

func TestClosingDoesNotWaitForAPeerThatDoesNotRead(t *testing.T) {
	for kind, security := range map[string]Security{"plain": {Plain: true}, "secret": {Secret: ourSecret}} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoorway()
				n := d.serve(t, Config{Security: security})
				c := d.visit("10.0.0.1")
				if n.secure != nil {
					c = tls.Client(c, n.secure.dialing("n"))
				}
				if err := writeHello(c, Forward, Greeting{Node: "a"}); err != nil {
					t.Fatal(err)
				}
				if _, err := readAnswer(c); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				began := time.Now()
				if err := n.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("got %v to close, want it not to wait for the peer", took)
				}
			})
		})
	}
}

func TestClosingWhileManyConnectLeavesNothing(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "a", Config{Security: security}), start(t, "b", Config{Security: security})
			var work sync.WaitGroup
			for range 20 {
				work.Go(func() {
					for {
						c, _, err := a.Dial(context.Background(), b.Address(), Forward)
						if errors.Is(err, net.ErrClosed) {
							return
						}
						if err == nil {
							c.Close()
						}
					}
				})
			}
			<-b.greeted
			work.Go(func() { b.Close() })
			b.Close()
			a.Close()
			work.Wait()
			empty(t, a)
			empty(t, b)
		})
	}
}
