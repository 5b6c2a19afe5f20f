package peer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlainDoesNotLeaveLoopback(t *testing.T) {
	a := start(t, "a", Config{})
	for range 3 {
		if _, _, err := a.Dial(t.Context(), "198.51.100.1:7361", Forward); !errors.Is(err, errUnauthenticated) {
			t.Errorf("got %v, want %v", err, errUnauthenticated)
		}
	}
	if got := a.log.Count(`msg="connection to peer not opened" address=198.51.100.1:7361`); got != 1 {
		t.Errorf("got %d lines, want one:\n%s", got, a.log)
	}
	empty(t, a)
}

func TestADialThatFindsNobodyIsNotLogged(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	a := start(t, "a", Config{})
	fails(t, a, l.Addr().String(), "connection refused")
	fails(t, a, "nobody.invalid:7361", "nobody.invalid")
	fails(t, a, "127.0.0.1", "missing port")
	if got := a.log.String(); strings.Contains(got, l.Addr().String()) || strings.Contains(got, "nobody") {
		t.Errorf("got %q, want nothing about peers that are not there", got)
	}
	empty(t, a)
}

func TestADialEndsWithItsContext(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			a := start(t, "a", Config{Security: security})

			ctx, cancel := context.WithCancel(t.Context())
			accepted := make(chan net.Conn, 1)
			go func() {
				c, err := silent.Accept()
				if err == nil {
					accepted <- c
				}
				cancel()
			}()
			if _, _, err := a.Dial(ctx, silent.Addr().String(), Forward); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
			(<-accepted).Close()

			ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, _, err := a.Dial(ctx, silent.Addr().String(), Forward); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
			empty(t, a)
		})
	}
}

func TestAConnectionOutlivesTheContextOfItsDial(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "a", Config{Security: security}), start(t, "b", Config{Security: security})
			ctx, cancel := context.WithCancel(t.Context())
			c, _, err := a.Dial(ctx, b.Address(), Forward)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			cancel()
			talks(t, c)
		})
	}
}

func TestAPeerThatClosesWithoutAnAnswerIsSaidTo(t *testing.T) {
	a := start(t, "a", Config{})
	fails(t, a, speak(t, ""), "peer closed the connection without an answer")
}

func TestNamesResolveToAllTheirAddresses(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{})
	_, port, err := net.SplitHostPort(b.Address())
	if err != nil {
		t.Fatal(err)
	}

	got, err := Resolve(t.Context(), "localhost:"+port)

	want := "localhost/127.0.0.1:" + port
	if err != nil || !slices.Contains(got, want) {
		t.Fatalf("got %v, %v, want %s among them", got, err, want)
	}
	connects(t, a, want)
	for _, address := range []string{"10.0.0.7:7361", "[::1]:7361", want} {
		if got, err := Resolve(t.Context(), address); err != nil || !slices.Equal(got, []string{address}) {
			t.Errorf("got %v, %v, want %s as it is", got, err, address)
		}
	}
	for _, address := range []string{"localhost", "nobody.invalid:7361"} {
		if got, err := Resolve(t.Context(), address); err == nil {
			t.Errorf("%s: got %v, want an error", address, got)
		}
	}
}

// Each address of this machine as the place to listen, and each as the one to dial: of one family or
// not, on one side of loopback or not.
func TestWhereANodeListensDoesNotLimitWhomItDials(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*node
	for _, a := range own {
		if ip := a.(*net.IPNet).IP; !ip.IsLinkLocalUnicast() {
			nodes = append(nodes, start(t, ip.String(), Config{Listen: net.JoinHostPort(ip.String(), "0"), Security: Security{Secret: ourSecret}}))
		}
	}
	for _, a := range nodes {
		for _, b := range nodes {
			connects(t, a, b.Address())
		}
	}
	if len(nodes) == 0 {
		t.Error("got no address, want at least loopback")
	}
}

func TestWhichConnectionsComeFromTheAddressOfTheListener(t *testing.T) {
	for _, c := range []struct {
		source, target string
		want           bool
	}{
		{"127.0.0.2", "127.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", true},
		{"2001:db8::1", "2001:db8::2", true},
		{"::1", "::1", true},
		{"127.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "127.0.0.1", false},
		{"127.0.0.1", "::1", false},
		{"10.0.0.1", "2001:db8::2", false},
		{"0.0.0.0", "10.0.0.2", false},
		{"::", "2001:db8::2", false},
		{"fe80::1%eth0", "fe80::2%eth0", false},
	} {
		if got := suits(netip.MustParseAddr(c.source), netip.MustParseAddr(c.target)); got != c.want {
			t.Errorf("from %s to %s: got %v, want %v", c.source, c.target, got, c.want)
		}
	}
	if suits(netip.Addr{}, netip.MustParseAddr("10.0.0.2")) {
		t.Error("without a source: got true, want false")
	}
}
