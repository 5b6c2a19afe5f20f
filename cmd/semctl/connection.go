package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// connection says which servers there are, and how to reach them.
type connection struct {
	Addr         []string      `default:"127.0.0.1:7360" placeholder:"ADDR" help:"Servers, separated by commas: host, host:port or the path of a Unix socket. Of several, the next one is asked when one cannot be reached (default: ${default})."`
	PasswordFile string        `placeholder:"FILE" help:"File whose first line is the password. Without it: the variable SEMCTL_PASSWORD."`
	Timeout      time.Duration `default:"10s" placeholder:"TIME" help:"How long to look for a server that answers (default: ${default})."`
	TLS          bool          `name:"tls" help:"Connect by TLS."`
	TLSCA        string        `name:"tls-ca" placeholder:"FILE" help:"Certificates that sign the servers' (PEM; default: those of the system). Implies --tls."`
	TLSCert      string        `name:"tls-cert" placeholder:"FILE" help:"Certificate to show to servers (PEM). Implies --tls."`
	TLSKey       string        `name:"tls-key" placeholder:"FILE" help:"Its key (PEM)."`
}

// Bounds of --timeout: below them no server could answer, above them nobody waits.
const (
	minTimeout = 10 * time.Millisecond
	maxTimeout = time.Hour
)

// maxPassword is the longest password, in bytes.
const maxPassword = 4096

// config reads what the flags name, and refuses what cannot be.
func (c connection) config(env environment) (remote.Config, error) {
	cfg := remote.Config{Patience: c.Timeout}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		return cfg, fmt.Errorf("--timeout: %v is not within %v … %v", c.Timeout, minTimeout, maxTimeout)
	}
	for _, a := range c.Addr {
		addr, err := remote.ParseAddr(a)
		if err != nil {
			return cfg, fmt.Errorf("--addr: %w", err)
		}
		cfg.Addrs = append(cfg.Addrs, addr)
	}
	if len(cfg.Addrs) == 0 {
		return cfg, errors.New("--addr is empty")
	}
	var err error
	if cfg.TLS, err = c.secure(); err != nil {
		return cfg, err
	}
	cfg.Password, _ = env.lookup("SEMCTL_PASSWORD")
	if c.PasswordFile == "" {
		return cfg, nil
	}
	if cfg.Password, err = readPassword(c.PasswordFile); err != nil {
		return cfg, fmt.Errorf("--password-file: %w", err)
	}
	return cfg, nil
}

// secure is the configuration of TLS; nil: none.
func (c *connection) secure() (*tls.Config, error) {
	if !c.TLS && c.TLSCA == "" && c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLSCA != "" {
		pem, err := os.ReadFile(c.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: %s holds no certificate", c.TLSCA)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return nil, errors.New("--tls-cert and --tls-key go together")
	}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// readPassword reads the first line of a file.
func readPassword(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	switch {
	case line == "":
		return "", fmt.Errorf("%s: the first line is empty", path)
	case len(line) > maxPassword:
		return "", fmt.Errorf("%s: the first line is longer than %d bytes", path, maxPassword)
	}
	return line, nil
}
