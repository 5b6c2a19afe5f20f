package peer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBothEndsNoticeADeadMachine(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "a", Config{Security: security}), open(t, "b", Config{Security: security})
			accepted := make(chan net.Conn, 1)
			b.is.Handle[Forward] = func(c net.Conn, _ Greeting) { accepted <- c }
			b.serve(t)
			dialed, _, err := a.Dial(t.Context(), b.Address(), Forward)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []net.Conn{dialed, <-accepted} {
				got := [4]int{option(t, c, unix.TCP_KEEPIDLE), option(t, c, unix.TCP_KEEPINTVL), option(t, c, unix.TCP_KEEPCNT), option(t, c, unix.TCP_USER_TIMEOUT)}
				if want := [4]int{10, 5, 2, 20000}; got != want {
					t.Errorf("got %v, want %v", got, want)
				}
				c.Close()
			}
		})
	}
}

func option(t *testing.T, c net.Conn, name int) (value int) {
	t.Helper()
	socket, err := c.(*connection).socket.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	socket.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) })
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPeersSeeTheAddressThatANodeListensAt(t *testing.T) {
	a, b := start(t, "a", Config{Listen: "127.0.0.2:0"}), open(t, "b", Config{Listen: "localhost:0"})
	from := make(chan net.Addr, 1)
	b.is.Handle[Forward] = func(c net.Conn, _ Greeting) { from <- c.RemoteAddr(); c.Close() }
	b.serve(t)
	c, _, err := a.Dial(t.Context(), b.listener.Addr().String(), Forward)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if got, want := addressOf(<-from), "127.0.0.2"; got.Is4() && got.String() != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// An address that has been taken from the machine must not keep it from its peers.
func TestASourceThatCannotBeBoundIsLeftToTheSystem(t *testing.T) {
	b := start(t, "b", Config{})
	for _, source := range []string{"198.51.100.1", "2001:db8::1"} {
		d := net.Dialer{ControlContext: func(_ context.Context, _, _ string, socket syscall.RawConn) error {
			return socket.Control(func(fd uintptr) { bindSource(fd, netip.MustParseAddr(source)) })
		}}
		c, err := d.DialContext(t.Context(), "tcp", b.listener.Addr().String())
		if err != nil {
			t.Errorf("%s: got %v, want a connection", source, err)
			continue
		}
		c.Close()
	}
}

func TestCloseEndsADialThatNobodyAnswers(t *testing.T) {
	address := full(t)
	a := open(t, "a", Config{})
	a.patience = time.Hour
	a.serve(t)
	failed := make(chan error, 1)
	go func() {
		_, _, err := a.Dial(context.Background(), address, Forward)
		failed <- err
	}()
	eventually(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.established == 1 }, func() any { return 0 }, "a dial")

	if err := a.Close(); err != nil {
		t.Fatal(err)
	}

	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
	empty(t, a)
}

// full listens at an address whose backlog is full: the system does not answer those who connect.
func full(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(bound.(*unix.SockaddrInet4).Port)).String()
	for range 10 {
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("got a connection each time, want a full backlog")
	return ""
}
