package peer

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// reloadEvery is how often the files are looked at for a change.
	reloadEvery = 5 * time.Second
	// maxPEM bounds each of the files, in bytes.
	maxPEM = 1 << 20
)

// files are the certificate, the key and the authorities of mutual TLS. watch alone changes them.
type files struct {
	from    Security
	host    string // where peers reach this node: the certificate must be for it
	log     *slog.Logger
	current atomic.Pointer[identity]
	blamed  mark // what has been complained about
}

// mark tells contents of the files apart.
type mark [sha256.Size]byte

// identity is who a node is, and whom it trusts.
type identity struct {
	certificate tls.Certificate
	authorities *x509.CertPool
	mark        mark
}

func openFiles(s Security, host string, log *slog.Logger) (*files, error) {
	if s.CertFile == "" || s.KeyFile == "" || s.CAFile == "" {
		return nil, fmt.Errorf("peers: certificate, key and CA go together: one of the three files is not given")
	}
	f := &files{from: s, host: withoutZone(host), log: log}
	texts, err := f.read()
	if err != nil {
		return nil, err
	}
	id, err := f.identify(texts)
	if err != nil {
		return nil, err
	}
	f.current.Store(id)
	return f, nil
}

// watch takes up files that have changed, until the context ends.
func (f *files) watch(ctx context.Context) {
	ticker := time.NewTicker(reloadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.reload()
		}
	}
}

// reload takes up what the files say. As long as that cannot serve, what was read before does; it is
// tried again each time, for files are replaced one after the other, and clocks differ.
func (f *files) reload() {
	texts, err := f.read()
	if err == nil && texts.mark == f.current.Load().mark {
		f.blamed = mark{}
		return
	}
	var id *identity
	if err == nil {
		id, err = f.identify(texts)
	}
	if err != nil {
		f.blame(texts.mark, err)
		return
	}
	f.current.Store(id)
	f.log.Info("certificate for peers reloaded", "file", f.from.CertFile, "expires", id.certificate.Leaf.NotAfter)
}

// blame complains about new contents once.
func (f *files) blame(contents mark, err error) {
	if contents == f.blamed {
		return
	}
	f.blamed = contents
	f.log.Error("certificate for peers not reloaded: the former one stays in use", "error", err)
}

// pems are the contents of the three files.
type pems struct {
	certificate, key, authorities []byte
	mark                          mark
}

// read returns the contents of the files, or an error and the mark of it.
func (f *files) read() (pems, error) {
	var texts [3][]byte
	var marks []byte
	for i, name := range []string{f.from.CertFile, f.from.KeyFile, f.from.CAFile} {
		text, err := readBounded(name)
		if err != nil {
			return pems{mark: sha256.Sum256([]byte(err.Error()))}, fmt.Errorf("read certificate for peers: %w", err)
		}
		texts[i] = text
		one := sha256.Sum256(text)
		marks = append(marks, one[:]...)
	}
	return pems{texts[0], texts[1], texts[2], sha256.Sum256(marks)}, nil
}

func readBounded(name string) ([]byte, error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if size := about.Size(); size > maxPEM || !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no PEM file (%v, %d bytes)", name, about.Mode().Type(), size)
	}
	return os.ReadFile(name)
}

// identify makes an identity of the files' contents, if peers with the same authorities will accept it.
func (f *files) identify(texts pems) (*identity, error) {
	certificate, err := tls.X509KeyPair(texts.certificate, texts.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s: %w", f.from.CertFile, f.from.KeyFile, err)
	}
	id := &identity{certificate: certificate, authorities: x509.NewCertPool(), mark: texts.mark}
	if !id.authorities.AppendCertsFromPEM(texts.authorities) {
		return nil, fmt.Errorf("CA %s holds no certificate", f.from.CAFile)
	}
	if err := id.verify(f.host); err != nil {
		return nil, fmt.Errorf("peers would not accept the certificate %s: %w", f.from.CertFile, err)
	}
	return id, nil
}

// verify looks at the certificate as peers will, who are dialed by it and dial it.
func (id *identity) verify(host string) error {
	between := x509.NewCertPool()
	for _, der := range id.certificate.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		between.AddCert(c)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := id.certificate.Leaf.Verify(x509.VerifyOptions{
			Roots: id.authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage},
		})
		if err != nil {
			return err
		}
	}
	return id.certificate.Leaf.VerifyHostname(host)
}

func (f *files) accepting() *tls.Config {
	id := f.current.Load()
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{id.certificate},
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              id.authorities,
		SessionTicketsDisabled: true,
	}
}

func (f *files) dialing(host string) *tls.Config {
	id := f.current.Load()
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// It is shown even where it will not be accepted: the other side's error then says why.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &id.certificate, nil },
		RootCAs:              id.authorities,
		ServerName:           withoutZone(host),
	}
}

func (f *files) name() string { return "certificate" }

// withoutZone leaves out the zone of an IPv6 address: certificates know none.
func withoutZone(host string) string {
	address, _, _ := strings.Cut(host, "%")
	return address
}
