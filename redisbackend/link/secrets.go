package link

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// credentials are a login. A password in a file is read each time, so that it can be changed while we
// run.
type credentials struct{ username, fixed, file string }

func (c credentials) password() (string, error) {
	if c.file == "" {
		return c.fixed, nil
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
		return "", fmt.Errorf("read password: the first line of %s is empty", c.file)
	}
	return string(line), nil
}

// tlsConfig reads the files; nil, where there is no TLS.
func (o Options) tlsConfig(addr string) (*tls.Config, error) {
	if !o.Target.TLS {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if c.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		c.ServerName = host
	}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("read authorities: " + o.CAFile + " has no certificate in PEM")
		}
	}
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
