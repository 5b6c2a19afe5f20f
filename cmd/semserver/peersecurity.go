package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"unicode/utf8"
)

const (
	// minSecret is how long the secret of a cluster is at least, in characters: it must not be guessed.
	minSecret = 32
	// maxSecret is how long it is at most, in bytes.
	maxSecret = 4096
)

// checkSecurity refuses to let nodes beyond loopback speak to each other as if nobody else could.
func (f peerFlags) checkSecurity() error {
	secret, files, plain := f.ClusterSecretFile != "", f.PeerCert != "" || f.PeerKey != "" || f.PeerCA != "", f.PlainPeers
	switch {
	case secret && files, secret && plain, files && plain:
		return errors.New("--cluster-secret-file, --peer-cert and --plain-peers exclude each other: give one of them")
	case files:
		return f.checkCertificates()
	case secret || plain:
		return nil
	}
	for _, a := range []flagged{{"--peer-listen", f.listen()}, {"--peer-advertise", f.PeerAdvertise}} {
		if a.value != "" && !onLoopback(a.value) {
			return fmt.Errorf("%s %s is beyond loopback, where nodes must know each other: "+
				"give --cluster-secret-file, or --peer-cert with --peer-key and --peer-ca, or --plain-peers if everybody there may do anything", a.flag, a.value)
		}
	}
	return nil
}

// onLoopback says whether an address can be reached from this machine alone. Of names, only localhost
// is known to be one.
func onLoopback(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkCertificates refuses files that could not serve.
func (f peerFlags) checkCertificates() error {
	for _, one := range []flagged{{"--peer-cert", f.PeerCert}, {"--peer-key", f.PeerKey}, {"--peer-ca", f.PeerCA}} {
		if one.value == "" {
			return fmt.Errorf("--peer-cert, --peer-key and --peer-ca belong together: %s is missing", one.flag)
		}
		if err := checkFile(one.flag, one.value); err != nil {
			return err
		}
	}
	if _, err := tls.LoadX509KeyPair(f.PeerCert, f.PeerKey); err != nil {
		return fmt.Errorf("--peer-cert %s and --peer-key %s: %w", f.PeerCert, f.PeerKey, err)
	}
	text, err := os.ReadFile(f.PeerCA)
	if err != nil {
		return fmt.Errorf("--peer-ca: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return fmt.Errorf("--peer-ca: %s holds no certificate", f.PeerCA)
	}
	return nil
}

// secret reads the secret of the cluster; nil: there is none.
func (f peerFlags) secret() ([]byte, error) {
	if f.ClusterSecretFile == "" {
		return nil, nil
	}
	text, err := firstLine(f.ClusterSecretFile, maxSecret)
	if err != nil {
		return nil, fmt.Errorf("--cluster-secret-file: %w", err)
	}
	if n := utf8.RuneCountInString(text); n < minSecret {
		return nil, fmt.Errorf("--cluster-secret-file: %s: the first line has %d characters; %d are needed, so that nobody guesses it", f.ClusterSecretFile, n, minSecret)
	}
	return []byte(text), nil
}

// exposed are the files with secrets of the cluster that others than their owner can read.
func (f peerFlags) exposed() []string {
	const others = 0o044
	var names []string
	for _, name := range []string{f.ClusterSecretFile, f.PeerKey} {
		if file, err := os.Stat(name); name != "" && err == nil && file.Mode().Perm()&others != 0 {
			names = append(names, name)
		}
	}
	return names
}
