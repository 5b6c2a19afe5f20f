package server

import (
	"net"
	"syscall"
	"time"
)

// Keepalive notices a client whose machine lost power: it is probed after 10 s of silence, and given
// up two unanswered probes later.
const (
	keepaliveIdle     = 10 * time.Second
	keepaliveInterval = 5 * time.Second
	keepaliveCount    = 2
	// userTimeout is the same for bytes that we have sent and nobody acknowledges.
	userTimeout = keepaliveIdle + keepaliveCount*keepaliveInterval
)

// socket looks at what lies beneath a connection. A nil socket has nothing beneath it.
type socket struct {
	raw  syscall.RawConn
	look func(fd uintptr)
	poll pollState
}

// newSocket returns the socket of a connection, also of one that TLS wraps.
func newSocket(c net.Conn) *socket {
	sc, ok := beneath(c).(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socket{raw: raw}
	s.look = s.poll.look
	return s
}

// hungUp reports whether the client has closed, reset or half-closed its end, also behind bytes that
// are not read yet. It does not block; where it cannot tell it says no.
func (s *socket) hungUp() bool {
	if s == nil {
		return false
	}
	return s.raw.Control(s.look) != nil || s.poll.hung
}

// beneath returns the connection under TLS, or the connection itself.
func beneath(c net.Conn) net.Conn {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		return wrapped.NetConn()
	}
	return c
}

// tune sets the options by which dead clients are noticed. A socket that refuses them serves as well.
func tune(c net.Conn) {
	tcp, ok := beneath(c).(*net.TCPConn)
	if !ok {
		return
	}
	tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveCount})
	if raw, err := tcp.SyscallConn(); err == nil {
		raw.Control(setUserTimeout)
	}
}
