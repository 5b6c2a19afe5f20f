package proxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below those that systems give to whoever dials: a node that is down for a while
// must find its port free when it comes back.
const (
	firstPort = 10_000
	lastPort  = 30_000
	portTries = 100
)

// FreeAddress is one of this IP address that nothing listens on at the moment.
func FreeAddress(ip string) (string, error) {
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
