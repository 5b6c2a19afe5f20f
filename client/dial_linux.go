package client

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unacknowledged is how long sent bytes may stay without acknowledgement before a connection counts as
// broken. Keep-alive does not look at connections that have such bytes, and the kernel's own patience
// is a quarter of an hour.
const unacknowledged = 10 * time.Second

// giveUpSoon is a net.Dialer's Control.
func giveUpSoon(network, _ string, socket syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	return socket.Control(func(fd uintptr) {
		// A kernel may refuse it; the connection works without it.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}
