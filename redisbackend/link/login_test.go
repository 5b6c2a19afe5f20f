package link

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/redisd"
)

func TestLoginsThatAreRefusedAreSaidAtTheStart(t *testing.T) {
	s := redisd.Run(t)
	_, err := s.Do("ACL", "SETUSER", "worker", "on", ">other", "~*", "&*", "+@all")
	must(t, err)
	_, err = s.Do("CONFIG", "SET", "requirepass", "secret")
	must(t, err)
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("secret\r\nmore\n"), 0o600))
	for _, c := range []struct{ login, file, want string }{
		{":secret@", "", ""},
		{"worker:other@", "", ""},
		{"", file, ""},
		{"", "", "NOAUTH"},
		{":wrong-one@", "", "WRONGPASS"},
		{"nobody:secret@", "", "WRONGPASS"},
	} {
		o := options(t, "redis://"+c.login+s.Addr)
		o.PasswordFile = c.file
		l, err := Open(t.Context(), o)
		if err == nil {
			if ready := l.Ready(); ready != nil {
				t.Errorf("%q: got %v, want it ready", c.login, ready)
			}
			l.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.login, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "wrong-one")) {
			t.Errorf("%q: got %v, want no password", c.login, err)
		}
	}
}

func TestAPasswordFileIsReadForEachConnection(t *testing.T) {
	s := redisd.Run(t)
	file := filepath.Join(t.TempDir(), "password")
	set := func(password string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	}
	set("one")
	o := options(t, "redis://"+s.Addr)
	o.PasswordFile = file
	_, err := s.Do("CONFIG", "SET", "requirepass", "one")
	must(t, err)
	l := open(t, o)
	must(t, call(t, l, increment("n")).err)

	set("")
	s.Kill()
	until(t, "the loss is noticed", func() bool { return l.Ready() != nil })
	must(t, s.Start()) // without a password, until one is set
	until(t, "the file is missed", func() bool { err := l.Ready(); return err != nil && strings.Contains(err.Error(), "is empty") })
	_, err = s.Do("CONFIG", "SET", "requirepass", "two")
	must(t, err)
	set("two")

	until(t, "it is up", func() bool { return l.Ready() == nil })
	must(t, call(t, l, increment("n")).err)
}

func TestTheDatabaseAndTheSocketAreThoseOfTheURL(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "r.sock")
	s := redisd.Run(t, "--unixsocket", socket)
	l := open(t, options(t, "unix:"+socket+"?db=3"))
	must(t, call(t, l, increment("n")).err)
	m := open(t, options(t, "redis://"+s.Addr+"/3"))

	if r := call(t, m, increment("n")); r.reply != int64(2) {
		t.Errorf("got %v, %v, want 2", r.reply, r.err)
	}
	if _, err := Open(t.Context(), options(t, "redis://"+s.Addr+"/99")); err == nil || !strings.Contains(err.Error(), "DB index is out of range") {
		t.Errorf("a database that is not there: got %v, want it said", err)
	}
	if got := s.Field("db3"); !strings.HasPrefix(got, "keys=1") {
		t.Errorf("got %q in database 3, want one key", got)
	}
}

// authority makes certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", nil)
	return a
}

// issue makes a certificate for this test's address, in name.pem and name.key.
func (a *authority) issue(t *testing.T, name string, ip net.IP) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{name + ".test"}, IPAddresses: []net.IP{ip},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.IPAddresses = true, true, x509.KeyUsageCertSign, nil
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(a.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	made, err := x509.ParseCertificate(der)
	must(t, err)
	return made, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func TestTLSAsksForWhatItIsTold(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server", net.ParseIP(redisd.IP()))
	a.issue(t, "client", net.ParseIP(redisd.IP()))
	other := newAuthority(t)
	addr := redisd.FreeAddr()
	_, port, _ := strings.Cut(addr, ":")
	redisd.Run(t, "--tls-port", port, "--tls-auth-clients", "yes",
		"--tls-cert-file", a.file("server.pem"), "--tls-key-file", a.file("server.key"), "--tls-ca-cert-file", a.file("ca.pem"))

	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"all there":             {func(*Options) {}, ""},
		"name in place of host": {func(o *Options) { o.ServerName = "server.test" }, ""},
		"another name":          {func(o *Options) { o.ServerName = "other.test" }, "not other.test"},
		"another authority":     {func(o *Options) { o.CAFile = other.file("ca.pem") }, "unknown authority"},
		"the system's":          {func(o *Options) { o.CAFile = "" }, "unknown authority"},
		"no certificate":        {func(o *Options) { o.CertFile, o.KeyFile = "", "" }, "log in"},
		"plain":                 {func(o *Options) { *o = options(t, "redis://"+addr) }, "log in"},
	} {
		o := options(t, "rediss://"+addr)
		o.CAFile, o.CertFile, o.KeyFile = a.file("ca.pem"), a.file("client.pem"), a.file("client.key")
		c.change(&o)
		l, err := Open(t.Context(), o)
		must(t, err) // it may be mended on the other side
		err = l.Ready()
		if c.want == "" && err == nil {
			err = call(t, l, increment("n")).err
		}
		l.Close()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestWhatDoesNotFitIsNamed(t *testing.T) {
	good := "redis_version:7.0.15\nredis_mode:standalone\nrole:master\ncluster_enabled:0\nloading:0\nmaxmemory:0\nmaxmemory_policy:noeviction\n"
	for _, c := range []struct {
		mode      Mode
		old, new  string
		want      string
		evicts    string
		permanent bool
	}{
		{Standalone, "", "", "", "", false},
		{Standalone, "7.0.15", "6.2.14", "too old", "", true},
		{Standalone, "7.0.15", "10.0.0", "", "", false},
		{Standalone, "redis_version:7.0.15", "", "does not say", "", true},
		{Standalone, "enabled:0", "enabled:1", "redis-cluster://", "", true},
		{Sentinel, "enabled:0", "enabled:1", "redis-cluster://", "", true},
		{Cluster, "", "", "not a node", "", true},
		{Standalone, "role:master", "role:slave", "replica", "", false},
		{Standalone, "loading:0", "loading:1", "loading", "", false},
		{Standalone, "maxmemory:0\nmaxmemory_policy:noeviction", "maxmemory:9\nmaxmemory_policy:allkeys-lru", "", "allkeys-lru", false},
		{Standalone, "noeviction", "allkeys-lru", "", "", false},
	} {
		f, err := examine(c.mode, fields(strings.Replace(good, c.old, c.new, 1)))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || f.evicts != c.evicts {
			t.Errorf("%s with %q: got %v, %q, want %q, %q", c.mode, c.new, err, f.evicts, c.want, c.evicts)
		}
		if err != nil && (code(beforehand(err)) == "BACKEND") != c.permanent {
			t.Errorf("%s with %q: got %v, want it permanent: %v", c.mode, c.new, beforehand(err), c.permanent)
		}
	}
}

func TestARedisThatMayDropKeysIsWarnedOf(t *testing.T) {
	s := redisd.Run(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	var log bytes.Buffer
	o := options(t, "redis://"+s.Addr)
	o.Lanes = 1
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	l, err := Open(t.Context(), o)
	must(t, err)
	l.Close()

	if got := log.String(); strings.Count(got, "allkeys-lru") != 1 {
		t.Errorf("got the log %s, want one warning", got)
	}
}

func TestReplicasAcknowledgeOrTheCallerIsTold(t *testing.T) {
	s := redisd.Run(t, "--repl-diskless-sync-delay", "0")
	o := options(t, "redis://"+s.Addr)
	o.Replicas, o.ReplicaTimeout = 1, 50*time.Millisecond
	l := open(t, o)

	if r := call(t, l, increment("n")); code(r.err) != "unreplicated" || r.reply != int64(1) {
		t.Errorf("without a replica: got %v, %v, want 1, said to be unreplicated", r.reply, r.err)
	}
	host, port, _ := strings.Cut(s.Addr, ":")
	replica := redisd.Run(t, "--replicaof", host, port)
	until(t, "it follows", func() bool { return replica.Field("master_link_status") == "up" })
	until(t, "it acknowledges", func() bool { return call(t, l, increment("n")).err == nil })
	last := call(t, l, increment("n"))
	must(t, last.err)
	if got, _ := replica.Do("GET", "n"); got != fmt.Sprint(last.reply) {
		t.Errorf("at the replica: got %v, want %v", got, last.reply)
	}
	must(t, replica.Pause())
	if r := call(t, l, increment("n")); code(r.err) != "unreplicated" {
		t.Errorf("with a replica that is silent: got %v, %v, want it unreplicated", r.reply, r.err)
	}
	must(t, replica.Resume())
}
