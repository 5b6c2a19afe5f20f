package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// socketMode lets the owner and the group of the unix socket connect.
const socketMode = 0o660

// listeners are the sockets of a node; nil where one is off. Whoever serves one closes it.
type listeners struct {
	tcp, unix, http net.Listener
}

// listen binds every address, or none. It comes before anything else is opened, so that a port that
// is taken costs no more than an error.
func listen(f addressFlags) (listeners, error) {
	var l listeners
	for _, b := range []struct {
		flag, addr string
		bind       func(addr string) (net.Listener, error)
		to         *net.Listener
	}{
		{"--listen", f.Listen, bindTCP, &l.tcp},
		{"--unix", f.Unix, bindUnix, &l.unix},
		{"--http", f.HTTP, bindTCP, &l.http},
	} {
		if b.addr == "" {
			continue
		}
		bound, err := b.bind(b.addr)
		if err != nil {
			l.close()
			return listeners{}, fmt.Errorf("%s: %w", b.flag, err)
		}
		*b.to = bound
	}
	return l, nil
}

// clients are the sockets on which the Redis protocol is spoken.
func (l listeners) clients() []net.Listener {
	var all []net.Listener
	for _, one := range []net.Listener{l.tcp, l.unix} {
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

// close closes what nobody serves.
func (l listeners) close() {
	for _, one := range append(l.clients(), l.http) {
		if one != nil {
			_ = one.Close() // there is nothing to lose yet
		}
	}
}

func bindTCP(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

func bindUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeStale removes the socket of a process that is gone. A kill leaves its file behind, and a
// restart must not need a hand.
func removeStale(path string) error {
	file, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if file.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return fmt.Errorf("%s is in use by another process", path)
	}
	return os.Remove(path)
}

// address is what a client dials; empty where the socket is off.
func address(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}
