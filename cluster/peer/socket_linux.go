package peer

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

func setUserTimeout(fd uintptr) {
	unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
}

// bindSource makes a connection come from an address, so that peers see the one that they know. Where the
// system does not want that, it chooses.
func bindSource(fd uintptr, source netip.Addr) {
	// The port is chosen when connecting: one port then serves connections to many addresses.
	unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	var address unix.Sockaddr = &unix.SockaddrInet6{Addr: source.As16()}
	if source.Is4() {
		address = &unix.SockaddrInet4{Addr: source.As4()}
	}
	_ = unix.Bind(int(fd), address)
}
