package peer

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhereANodeMayListenForPeers(t *testing.T) {
	const beyond = "give --cluster-secret-file, or --peer-cert, --peer-key and --peer-ca, or allow it by name with --plain-peers"
	secret := Security{Secret: ourSecret}
	for _, c := range []struct {
		security          Security
		listen, advertise string
		want              string // "": it may
	}{
		{Security{}, "127.0.0.1:7361", "", ""},
		{Security{}, "127.8.9.1:7361", "", ""},
		{Security{}, "[::1]:7361", "", ""},
		{Security{}, "[::ffff:127.0.0.1]:7361", "", ""},
		{Security{}, "localhost:7361", "localhost:7361", ""},
		{Security{}, "10.0.0.7:7361", "", beyond},
		{Security{}, "[fe80::1%eth0]:7361", "", beyond},
		{Security{}, "node1:7361", "", beyond},
		{Security{}, "localhost.example.org:7361", "", beyond},
		{Security{}, "0.0.0.0:7361", "127.0.0.1:7361", beyond},
		{Security{}, "127.0.0.1:7361", "10.0.0.7:7361", beyond},
		{Security{}, "127.0.0.1:7361", "node1:7361", beyond},
		{Security{Plain: true}, "0.0.0.0:7361", "10.0.0.7:7361", ""},
		{Security{Plain: true}, "10.0.0.7:7361", "", ""},
		{secret, "0.0.0.0:7361", "node1:7361", ""},
		{secret, "127.0.0.1:7361", "", ""},
		{secret, "0.0.0.0:7361", "", "peers cannot connect to"},
		{secret, ":7361", "", "peers cannot connect to"},
		{secret, "[::]:7361", "", "peers cannot connect to"},
		{secret, "10.0.0.7:7361", "0.0.0.0:7361", "peers cannot connect to"},
		{secret, "10.0.0.7", "", "address to listen for peers at: address 10.0.0.7: missing port"},
		{secret, "10.0.0.7:7361", "node1", "address to advertise to peers: address node1: missing port"},
	} {
		err := c.security.Check(c.listen, c.advertise)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, listen %s, advertise %s: got %v, want %q", c.security, c.listen, c.advertise, err, c.want)
		}
	}
}

func TestListenRefusesWhatCheckRefuses(t *testing.T) {
	for _, cfg := range []Config{
		{Listen: "0.0.0.0:0", Advertise: "127.0.0.1:7361"},
		{Listen: "127.0.0.1:0", Security: Security{Secret: []byte("short")}},
		{Listen: "127.0.0.1:0", MaxConns: -1},
		{Listen: "127.0.0.1:0", MaxHandshakes: -1},
		{Listen: "127.0.0.1:99999"},
	} {
		if n, err := Listen(cfg); err == nil {
			n.Close()
			t.Errorf("%+v: got none, want an error", cfg)
		}
	}
}

func TestSettingsOfSecurityThatCannotServe(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good := ca.issue(t, "127.0.0.1", "node1")
	with := func(change func(*Security)) Security {
		s := good
		change(&s)
		return s
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(change func(*x509.Certificate), hosts ...string) Security {
		return ca.issueAs(t, t.TempDir(), change, hosts...)
	}
	for name, c := range map[string]struct {
		security Security
		want     string
	}{
		"good":              {good, ""},
		"secret":            {Security{Secret: ourSecret}, ""},
		"short secret":      {Security{Secret: ourSecret[:31]}, "the cluster secret has 31 characters: it needs at least 32"},
		"empty secret":      {Security{Secret: []byte{}}, "the cluster secret has 0 characters"},
		"few characters":    {Security{Secret: []byte(strings.Repeat("ü", 31))}, "the cluster secret has 31 characters"},
		"files, secret":     {with(func(s *Security) { s.Secret = ourSecret }), "choose one"},
		"files, plain":      {with(func(s *Security) { s.Plain = true }), "choose one"},
		"secret, plain":     {Security{Secret: ourSecret, Plain: true}, "choose one"},
		"no key":            {with(func(s *Security) { s.KeyFile = "" }), "go together"},
		"only a CA":         {Security{CAFile: good.CAFile}, "go together"},
		"missing file":      {with(func(s *Security) { s.KeyFile = "/nowhere/key" }), "read certificate for peers: stat /nowhere/key"},
		"directory":         {with(func(s *Security) { s.CAFile = "/" }), "/ is no PEM file"},
		"empty certificate": {with(func(s *Security) { s.CertFile = empty }), "certificate " + empty},
		"empty CA":          {with(func(s *Security) { s.CAFile = empty }), "holds no certificate"},
		"another key":       {with(func(s *Security) { s.KeyFile = ca.issue(t, "node1").KeyFile }), "does not match"},
		"another CA":        {with(func(s *Security) { s.CAFile = other.issue(t, "node1").CAFile }), "unknown authority"},
		"expired":           {as(expired, "node1"), "expired"},
		"not yet valid":     {as(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, "node1"), "not yet valid"},
		"another host":      {as(func(*x509.Certificate) {}, "node2"), "not node1"},
		"no client":         {as(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }, "node1"), "incompatible key usage"},
		"no server":         {as(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }, "node1"), "incompatible key usage"},
		"any usage":         {as(func(c *x509.Certificate) { c.ExtKeyUsage = nil }, "node1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.security.Check("127.0.0.1:7361", "node1:7361")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSecurityDoesNotPrintItsSecret(t *testing.T) {
	for want, s := range map[string]Security{
		"plain": {}, "cluster secret": {Secret: ourSecret}, "mutual TLS": {CertFile: "c"},
	} {
		got := fmt.Sprintf("%v %+v %s", s, struct{ S Security }{s}, s)
		if want := want + " {S:" + want + "} " + want; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
