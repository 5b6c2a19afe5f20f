package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddr is a loopback address that nothing listens on at the moment.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

const (
	firstPort = 10_000
	lastPort  = 30_000
	portTries = 100
)

// FreeAddrOn is an address of this IP address that nothing listens on at the moment. Its port is below
// those that systems give to whoever dials, so that a node that is down for a while finds it free when
// it comes back.
func FreeAddrOn(ip string) (string, error) {
	var last error
	for range portTries {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, firstPort+rand.IntN(lastPort-firstPort)))
		if err != nil {
			last = errors.Join(last, err)
			continue
		}
		defer l.Close()
		return l.Addr().String(), nil
	}
	return "", fmt.Errorf("no free port of %s: %w", ip, last)
}
