package tests

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

func TestNodeWithAnotherSecretIsKeptOut(t *testing.T) {
	t.Parallel()
	ours, theirs := secretFile(t, strings.Repeat("ours ", 8)), secretFile(t, strings.Repeat("theirs ", 8))
	s := form(t, "--cluster-secret-file", ours)
	s.keepsOut("peer does not know our cluster secret", func(*member) []string { return []string{"--cluster-secret-file", theirs} })
	s.keepsOut("peers of this node speak TLS", func(*member) []string { return nil })
	s.start(s.prepare("--join", s.peers(), "--cluster-secret-file", ours))
	s.know(4)
}

func TestClusterFormsWithCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	s := formOf(t, func(m *member) []string { return ours.flags(t, m) })
	for _, i := range s.running() {
		s.dial(i).acquire("pool", "CAPACITY", 100)
	}
	s.keepsOut("certificate that is not to be trusted", func(m *member) []string { return theirs.flags(t, m) })
}

// secretFile writes a cluster secret.
func secretFile(t *testing.T, secret string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// complainEvery is how often a node may say the same of the same address.
const complainEvery = 10 * time.Second

// keepsOut starts one more node, which must not become a member and must say why: for each address, but
// not for each attempt.
func (s *several) keepsOut(why string, flags func(m *member) []string) {
	s.Helper()
	peers := s.peers()
	stranger := s.prepare("--join", peers)
	m, began := s.members[stranger], time.Now()
	s.launch(stranger, flags(m)...)
	trial.Await(s.T, func() error {
		if log := m.node.Log(); len(complaints(log, why)) < strings.Count(peers, ",")+1 {
			return fmt.Errorf("got the log\n%s\nwant %q for each of %s", log, why, peers)
		}
		return nil
	})
	s.kill(stranger)
	s.members = s.members[:stranger]
	most := 1 + int(time.Since(began)/complainEvery)
	for address, times := range perAddress(s.T, complaints(m.node.Log(), why)) {
		if times > most {
			s.Errorf("got %d lines about %s, want at most %d:\n%s", times, address, most, m.node.Log())
		}
	}
	s.know(3)
	for _, i := range s.running() {
		s.dial(i).acquire("pool", "CAPACITY", 100)
	}
}

// complaints are the lines of a log, at level WARN or ERROR, that contain this.
func complaints(log, part string) []string {
	var all []string
	for line := range strings.Lines(log) {
		var entry struct{ Level string }
		if json.Unmarshal([]byte(line), &entry) == nil && (entry.Level == "WARN" || entry.Level == "ERROR") && strings.Contains(line, part) {
			all = append(all, line)
		}
	}
	return all
}

// perAddress counts lines by the address that they are about.
func perAddress(t *testing.T, lines []string) map[string]int {
	t.Helper()
	times := map[string]int{}
	for _, line := range lines {
		var entry struct{ Address string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Address == "" {
			t.Errorf("%s: got no address, want whom it is about", line)
		}
		times[entry.Address]++
	}
	return times
}

// authority signs the certificates of nodes.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca"), key: newKey(t)}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate = a.sign(t, a.certificate, a.key, a.file)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign writes a certificate.
func (a *authority) sign(t *testing.T, template *x509.Certificate, key *ecdsa.PrivateKey, file string) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, file, "CERTIFICATE", der)
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// flags give a node a certificate for its address.
func (a *authority) flags(t *testing.T, m *member) []string {
	t.Helper()
	host, _, err := net.SplitHostPort(m.peer)
	if err != nil {
		t.Fatal(err)
	}
	folder, key := t.TempDir(), newKey(t)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(folder, "cert"), filepath.Join(folder, "key")
	writePEM(t, keyFile, "PRIVATE KEY", secret)
	a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(host)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key, certFile)
	return []string{"--peer-cert", certFile, "--peer-key", keyFile, "--peer-ca", a.file}
}
