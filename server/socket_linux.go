package server

import "golang.org/x/sys/unix"

// pollState is what one look at a socket needs, kept so that a look allocates nothing.
type pollState struct {
	fds  [1]unix.PollFd
	hung bool
}

func (p *pollState) look(fd uintptr) {
	p.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP}
	n, err := unix.Poll(p.fds[:], 0)
	for err == unix.EINTR {
		n, err = unix.Poll(p.fds[:], 0)
	}
	p.hung = err == nil && n > 0 && p.fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

func setUserTimeout(fd uintptr) {
	unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
}
