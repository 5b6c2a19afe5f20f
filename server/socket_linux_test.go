package server

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/semserver/semserver/internal/trial"
)

func TestDeadPeersAreProbed(t *testing.T) {
	r := start(t)
	r.dial(t).send("PING").want("+PONG\r\n")
	raw, err := r.clients()[0].net.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		name         string
		level, which int
		want         int
	}{
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
		{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 2},
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 20_000},
	} {
		raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), o.level, o.which); err != nil || got != o.want {
				t.Errorf("%s: got %d, %v; want %d", o.name, got, err, o.want)
			}
		})
	}
}

func TestHangUpIsSeenBehindUnreadBytes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, leave := range map[string]func(*net.TCPConn){
		"close":      func(c *net.TCPConn) { c.Close() },
		"reset":      func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
		"half-close": func(c *net.TCPConn) { c.CloseWrite() },
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		there, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s := newSocket(there)
		c.Write([]byte("unread"))
		if s.hungUp() {
			t.Errorf("%s: seen before it happened", name)
		}
		leave(c.(*net.TCPConn))
		trial.Until(t, name+" is seen", s.hungUp)
		if n := testing.AllocsPerRun(100, func() { s.hungUp() }); n != 0 {
			t.Errorf("a look allocates %v times, want 0", n)
		}
		there.Close()
		if !s.hungUp() {
			t.Errorf("%s: a connection that we closed is not there any more", name)
		}
		c.Close()
	}
}
