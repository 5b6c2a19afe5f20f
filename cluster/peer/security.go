package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"unicode/utf8"
)

// minSecret is how long a cluster secret is at least, in characters.
const minSecret = 32

// Security is how the nodes of a cluster know each other: by certificates, by a secret, or (the zero
// value) not at all, which is for one machine only. At most one kind may be set.
type Security struct {
	// CertFile, KeyFile and CAFile are PEM files of mutual TLS: the certificate of this node with its
	// key, and the authorities whose certificates are those of peers. They are read again when they change.
	CertFile, KeyFile, CAFile string
	// Secret is what every node of the cluster knows and nobody else, at least 32 characters; nil: none.
	// It is taken as it is, with white space and line ends.
	Secret []byte
	// Plain allows plain, unauthenticated connections beyond loopback.
	Plain bool
}

// credentials make the TLS configuration of each handshake.
type credentials interface {
	accepting() *tls.Config
	dialing(host string) *tls.Config
	// name is what this node shows to be trusted, as people call it.
	name() string
}

// Check says why a node must not listen for peers at an address (host:port) and advertise another (empty:
// the same): settings that contradict each other, a short secret, files that cannot serve, or addresses
// beyond loopback without authentication. Names are not resolved: of them, only localhost is loopback.
func (s Security) Check(listen, advertise string) error {
	_, err := s.open(listen, advertise, slog.New(slog.DiscardHandler))
	return err
}

// String names the kind, and nothing that is secret.
func (s Security) String() string {
	switch {
	case s.files():
		return "mutual TLS"
	case s.Secret != nil:
		return "cluster secret"
	}
	return "plain"
}

func (s Security) files() bool { return s.CertFile != "" || s.KeyFile != "" || s.CAFile != "" }

// open checks, and returns the credentials; nil: plain.
func (s Security) open(listen, advertise string, log *slog.Logger) (credentials, error) {
	host, err := reachable(listen, advertise)
	switch {
	case err != nil:
		return nil, err
	case s.files() && s.Secret != nil, s.files() && s.Plain, s.Secret != nil && s.Plain:
		return nil, errors.New("peers: choose one of certificates, cluster secret and plain")
	case s.files():
		return openFiles(s, host, log)
	case s.Secret != nil:
		return deriveKey(s.Secret)
	case s.Plain:
		return nil, nil
	}
	for _, address := range []string{listen, advertise} {
		if address != "" && !onLoopback(address) {
			return nil, beyondLoopback(address)
		}
	}
	return nil, nil
}

// reachable returns the host under which peers know a node.
func reachable(listen, advertise string) (string, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("address to listen for peers at: %w", err)
	}
	if advertise != "" {
		if host, _, err = net.SplitHostPort(advertise); err != nil {
			return "", fmt.Errorf("address to advertise to peers: %w", err)
		}
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return "", fmt.Errorf("peers cannot connect to %q: give the address under which they reach this node", host)
	}
	return host, nil
}

func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

var errUnauthenticated = errors.New("peers beyond loopback must authenticate")

func beyondLoopback(address string) error {
	return fmt.Errorf("%w, and %s is beyond: give --cluster-secret-file, or --peer-cert, --peer-key and --peer-ca, "+
		"or allow it by name with --plain-peers", errUnauthenticated, address)
}

func checkSecret(secret []byte) error {
	if n := utf8.RuneCount(secret); n < minSecret {
		return fmt.Errorf("the cluster secret has %d characters: it needs at least %d, so that it cannot be guessed", n, minSecret)
	}
	return nil
}
