package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca of " + t.Name()}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate = a.sign(t, template, template, a.key)
	return a
}

func (a *authority) sign(t testing.TB, template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// issue writes the three files of a node with the names of a host.
func (a *authority) issue(t testing.TB, hosts ...string) Security {
	t.Helper()
	return a.issueAs(t, t.TempDir(), func(*x509.Certificate) {}, hosts...)
}

// issueAs writes the three files into a directory, with a certificate that is changed before it is signed.
func (a *authority) issueAs(t testing.TB, dir string, change func(*x509.Certificate), hosts ...string) Security {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	change(template)
	key := newKey(t)
	c := a.sign(t, template, a.certificate, key)
	keyText, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s := Security{CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"), CAFile: filepath.Join(dir, "ca")}
	write(t, s.CertFile, "CERTIFICATE", c.Raw)
	write(t, s.KeyFile, "PRIVATE KEY", keyText)
	write(t, s.CAFile, "CERTIFICATE", a.certificate.Raw)
	return s
}

func write(t testing.TB, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// trust adds authorities to a CA file.
func trust(t testing.TB, s Security, more ...*authority) {
	t.Helper()
	text, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range more {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})...)
	}
	if err := os.WriteFile(s.CAFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// only shows the node another authority than it has.
func only(t testing.TB, s Security, a *authority) {
	t.Helper()
	write(t, s.CAFile, "CERTIFICATE", a.certificate.Raw)
}

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
