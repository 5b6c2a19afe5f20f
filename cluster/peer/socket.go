package peer

import (
	"net"
	"net/netip"
	"time"
)

// Keepalive notices a peer whose machine lost power: it is probed after 10 s of silence, and given up two
// unanswered probes later.
const (
	keepaliveIdle     = 10 * time.Second
	keepaliveInterval = 5 * time.Second
	keepaliveCount    = 2
	// userTimeout is the same for bytes that we have sent and nobody acknowledges.
	userTimeout = keepaliveIdle + keepaliveCount*keepaliveInterval
)

// tune sets the options by which dead peers are noticed. A socket that refuses them serves as well.
func tune(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveCount})
	if raw, err := tcp.SyscallConn(); err == nil {
		raw.Control(setUserTimeout)
	}
}

// addressOf returns the IP address of one end; the zero Addr where there is none.
func addressOf(end net.Addr) netip.Addr {
	tcp, ok := end.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}

// suits says whether a connection to an address may come from another: of the same family, and on the
// same side of loopback. A link-local source is left to the system, which knows the interface.
func suits(source, target netip.Addr) bool {
	return source.IsValid() && !source.IsUnspecified() && source.Zone() == "" &&
		source.Is4() == target.Is4() && source.IsLoopback() == target.IsLoopback()
}
