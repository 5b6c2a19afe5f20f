package peer

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The certificates of this authority are fine at start; each test then spoils one side.
func TestCertificatesOfAnotherAuthorityAreNotTrusted(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	a := start(t, "a", Config{Security: ours.issue(t, "127.0.0.1")})
	b := start(t, "b", Config{Security: theirs.issue(t, "127.0.0.1")})

	fails(t, a, b.Address(), "peer has a certificate that is not to be trusted")
	fails(t, b, a.Address(), "peer has a certificate that is not to be trusted")

	a.log.wants(t, `msg="peer turned away" address=127.0.0.1 error="peer does not accept our certificate`)
	if len(a.greeted)+len(b.greeted) != 0 {
		t.Error("got a connection, want none to reach its handler")
	}
}

// The end that dials trusts both authorities, so that the one that accepts has to decide.
func TestTheAcceptingEndAsksForACertificateItself(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	n := start(t, "n", Config{Security: ours.issue(t, "127.0.0.1")})
	guest := theirs.issue(t, "127.0.0.1")
	trust(t, guest, ours)
	a := start(t, "a", Config{Security: guest})

	fails(t, a, n.Address(), "peer does not accept our certificate")
	n.log.wants(t, `msg="peer turned away" address=127.0.0.1 error="peer has a certificate that is not to be trusted`)

	c := tls.Client(raw(t, n), &tls.Config{InsecureSkipVerify: true})
	_ = writeHello(c, Forward, Greeting{Node: "eve"})
	if _, err := readAnswer(c); err == nil || len(n.greeted) != 0 {
		t.Errorf("without a certificate: got %v and %d connections, want an error and none", err, len(n.greeted))
	}
}

// A certificate that ends while its node runs, and is not replaced.
func TestAnExpiredCertificateIsNotTrusted(t *testing.T) {
	ca := newAuthority(t)
	spoil := func(n *node) {
		s := ca.issueAs(t, t.TempDir(), expired, "127.0.0.1")
		id := *n.secure.(*files).current.Load()
		id.certificate = loadPair(t, s)[0]
		n.secure.(*files).current.Store(&id)
	}
	a, b := start(t, "a", Config{Security: ca.issue(t, "127.0.0.1")}), start(t, "b", Config{Security: ca.issue(t, "127.0.0.1")})
	connects(t, a, b.Address())

	spoil(a)
	fails(t, a, b.Address(), "peer does not accept our certificate")
	fails(t, b, a.Address(), "expired")

	b.log.wants(t, "expired")
}

func TestACertificateIsForTheHostThatWasDialed(t *testing.T) {
	ca := newAuthority(t)
	a := start(t, "a", Config{Security: ca.issue(t, "127.0.0.1")})
	b := start(t, "b", Config{Security: ca.issue(t, "node1", "127.0.0.1"), Advertise: "node1:7361"})
	c := start(t, "c", Config{Security: ca.issue(t, "localhost"), Advertise: "localhost:7361"})
	at := func(host string, n *node) string {
		return strings.Replace(n.listener.Addr().String(), "127.0.0.1", host, 1)
	}

	connects(t, a, at("127.0.0.1", b))
	fails(t, a, at("localhost", b), "peer has a certificate for another host")
	connects(t, a, at("localhost", c))
	fails(t, a, at("127.0.0.1", c), "peer has a certificate for another host")
	connects(t, a, at("node1/127.0.0.1", b)) // an address that a name was resolved to
	fails(t, a, at("node2/127.0.0.1", b), "peer has a certificate for another host")
}

func TestChangedFilesAreTakenUp(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	mine := ours.issue(t, "127.0.0.1")
	a, b := start(t, "a", Config{Security: mine}), start(t, "b", Config{Security: theirs.issue(t, "127.0.0.1")})
	fails(t, a, b.Address(), "not to be trusted")

	theirs.issueAs(t, filepath.Dir(mine.CertFile), func(*x509.Certificate) {}, "127.0.0.1")
	a.secure.(*files).reload()

	connects(t, a, b.Address())
	connects(t, b, a.Address())
	a.log.wants(t, `msg="certificate for peers reloaded"`)
}

func TestOpenConnectionsOutliveACertificate(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	mine := ours.issue(t, "127.0.0.1")
	a, b := start(t, "a", Config{Security: mine}), start(t, "b", Config{Security: ours.issue(t, "127.0.0.1")})
	c, _, err := a.Dial(t.Context(), b.Address(), Forward)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	theirs.issueAs(t, filepath.Dir(mine.CertFile), func(*x509.Certificate) {}, "127.0.0.1")
	a.secure.(*files).reload()

	fails(t, a, b.Address(), "not to be trusted")
	talks(t, c)
}

func TestFilesThatCannotServeAreNotTakenUp(t *testing.T) {
	ca := newAuthority(t)
	for name, spoil := range map[string]func(Security){
		"garbage":      func(s Security) { write(t, s.CertFile, "CERTIFICATE", []byte("garbage")) },
		"another key":  func(s Security) { write(t, s.KeyFile, "PRIVATE KEY", []byte("garbage")) },
		"expired":      func(s Security) { ca.issueAs(t, filepath.Dir(s.CertFile), expired, "127.0.0.1") },
		"another host": func(s Security) { ca.issueAs(t, filepath.Dir(s.CertFile), func(*x509.Certificate) {}, "node2") },
		"another CA":   func(s Security) { only(t, s, newAuthority(t)) },
		"gone":         func(s Security) { os.Remove(s.KeyFile) },
	} {
		t.Run(name, func(t *testing.T) {
			const complaint = `msg="certificate for peers not reloaded: the former one stays in use"`
			mine := ca.issue(t, "127.0.0.1")
			a, b := start(t, "a", Config{Security: mine}), start(t, "b", Config{Security: ca.issue(t, "127.0.0.1")})
			f := a.secure.(*files)
			for range 3 {
				spoil(mine)
				f.blamed = mark{} // new keys each time
				f.reload()
				f.reload()
			}

			connects(t, a, b.Address())
			connects(t, b, a.Address())
			if got := a.log.Count(complaint); got != 3 {
				t.Errorf("got %d complaints, want one for each change:\n%s", got, a.log)
			}

			ca.issueAs(t, filepath.Dir(mine.CertFile), func(*x509.Certificate) {}, "127.0.0.1")
			f.reload()
			a.log.wants(t, `msg="certificate for peers reloaded"`)
		})
	}
}

// As with clocks that differ: what could not be used serves when its time has come.
func TestACertificateIsTakenUpWhenItBecomesValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		mine := ca.issue(t, "127.0.0.1")
		log := &journal{}
		f, err := openFiles(mine, "127.0.0.1", logTo(log))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		ctx := t.Context()
		go func() { defer close(done); f.watch(ctx) }()
		former := f.current.Load()

		ca.issueAs(t, filepath.Dir(mine.CertFile), func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, "127.0.0.1")
		time.Sleep(30 * time.Second)
		if got := f.current.Load(); got != former || log.Count("not yet valid") != 1 {
			t.Errorf("before: got another or %q, want the former one and one complaint", log)
		}
		time.Sleep(30*time.Second + reloadEvery)
		if got := f.current.Load(); got == former {
			t.Errorf("after: got the former one, want the new one: %s", log)
		}
	})
}
