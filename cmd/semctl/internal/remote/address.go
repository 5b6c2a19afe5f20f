package remote

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// defaultPort is where a semserver listens.
const defaultPort = "7360"

// ParseAddr completes an address: a host gets the default port; an absolute path, or one behind
// "unix:", is a Unix socket. It returns host:port or an absolute path.
func ParseAddr(text string) (string, error) {
	text = strings.TrimSpace(text)
	path, isUnix := strings.CutPrefix(text, "unix:")
	switch {
	case text == "":
		return "", errors.New("an address is empty")
	case isUnix && !strings.HasPrefix(path, "/"):
		return "", fmt.Errorf("%q: the path of a Unix socket begins with /", text)
	case isUnix || strings.HasPrefix(text, "/"):
		return path, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), defaultPort
		if strings.Contains(host, ":") && net.ParseIP(host) == nil || strings.ContainsAny(host, "/ ") {
			return "", fmt.Errorf("%q is not a host, host:port or the path of a Unix socket", text)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q: the port is not a number from 1 to 65535", text)
	}
	if host == "" {
		return "", fmt.Errorf("%q names no host", text)
	}
	return net.JoinHostPort(host, port), nil
}

// network is the network of an address that ParseAddr returned.
func network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}
