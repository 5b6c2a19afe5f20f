package peer

import (
	"crypto/ed25519"
	"crypto/tls"
	"encoding/hex"
	"net"
	"testing"
)

func TestASecretAlwaysGivesTheSameKey(t *testing.T) {
	key, err := deriveKey(ourSecret)
	if err != nil {
		t.Fatal(err)
	}
	public := key.config.Certificates[0].PrivateKey.(ed25519.PrivateKey).Public().(ed25519.PublicKey)
	const want = "fc0a5d4878537b29d4a7d957ea1c8a8c3a10b95a41840906d60efa00ef62a1d7" // nodes of other versions derive the same
	if got := hex.EncodeToString(public); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhoDoesNotKnowTheSecretIsNoPeer(t *testing.T) {
	ours, theirs := Security{Secret: ourSecret}, Security{Secret: otherSecret}
	a, b := start(t, "a", Config{Security: ours}), start(t, "b", Config{Security: theirs})
	for range 3 {
		fails(t, a, b.Address(), "peer does not know our cluster secret")
		fails(t, b, a.Address(), "peer does not know our cluster secret")
	}
	for _, n := range []*node{a, b} {
		n.log.wants(t, `msg="peer does not fit this node"`)
		n.log.wants(t, `msg="peer turned away" address=127.0.0.1 error="peer does not accept our cluster secret`)
		if got := n.log.Count("\n"); got != 2 {
			t.Errorf("got %d lines, want one for each direction:\n%s", got, n.log)
		}
	}
	if len(a.greeted)+len(b.greeted) != 0 {
		t.Error("got a connection, want none to reach its handler")
	}
	empty(t, a)
	empty(t, b)
}

// A client that does not care who answers, as an attacker would not.
func TestTheAcceptingEndAsksForTheSecretItself(t *testing.T) {
	n := start(t, "n", Config{Security: Security{Secret: ourSecret}})
	other, err := deriveKey(otherSecret)
	if err != nil {
		t.Fatal(err)
	}
	for name, certificates := range map[string][]tls.Certificate{
		"other key": other.config.Certificates, "none": nil,
		"certificate": loadPair(t, newAuthority(t).issue(t, "127.0.0.1")),
	} {
		t.Run(name, func(t *testing.T) {
			c := tls.Client(raw(t, n), &tls.Config{InsecureSkipVerify: true, Certificates: certificates})
			_ = writeHello(c, Forward, Greeting{Node: "eve"}) // the error comes with it or behind it
			if _, err := readAnswer(c); err == nil {
				t.Error("got an answer, want none")
			}
		})
	}
	n.log.wants(t, "peer turned away")
	if len(n.greeted) != 0 {
		t.Error("got a connection, want none to reach its handler")
	}
}

// The key in a certificate proves nothing without the private half.
func TestACertificateThatWasSeenIsOfNoUse(t *testing.T) {
	n := start(t, "n", Config{Security: Security{Secret: ourSecret}})
	look, err := tls.Dial("tcp", n.Address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := look.ConnectionState().PeerCertificates[0].Raw
	look.Close()
	_, mine, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw(t, n), &tls.Config{
		InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Certificate: [][]byte{seen}, PrivateKey: mine}, nil
		},
	})
	_ = writeHello(c, Forward, Greeting{Node: "eve"})
	if _, err := readAnswer(c); err == nil || len(n.greeted) != 0 {
		t.Errorf("got %v and %d connections, want an error and none", err, len(n.greeted))
	}
}

func TestOlderTLSIsNotSpoken(t *testing.T) {
	for _, security := range []Security{{Secret: ourSecret}, newAuthority(t).issue(t, "127.0.0.1")} {
		n := start(t, "n", Config{Security: security})
		c := tls.Client(raw(t, n), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if err := c.Handshake(); err == nil {
			t.Errorf("%v: got TLS %x, want an error", security, c.ConnectionState().Version)
		}
		n.log.wants(t, "unsupported versions")
	}
}

func TestPlainAndTLSDoNotFit(t *testing.T) {
	for kind, security := range kinds(t) {
		if kind == "plain" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			over, plain := start(t, "over", Config{Security: security}), start(t, "plain", Config{})
			fails(t, plain, over.Address(), "refused by peer: peers of this node speak TLS")
			fails(t, over, plain.Address(), "not a peer: it speaks another protocol, or is a peer without TLS")
			over.log.wants(t, `msg="peer turned away" address=127.0.0.1 error="peer speaks without TLS, this node with TLS"`)
			plain.log.wants(t, `msg="peer turned away" address=127.0.0.1 error="peer speaks with TLS, this node without TLS"`)
			over.log.wants(t, `msg="peer does not fit this node" address=`+plain.Address())
			empty(t, over)
			empty(t, plain)
		})
	}
}

func TestOtherProtocolsAreTurnedAway(t *testing.T) {
	for kind, security := range kinds(t) {
		for protocol, words := range map[string]string{"http": "GET / HTTP/1.1\r\n\r\n", "redis": "*1\r\n$4\r\nPING\r\n"} {
			t.Run(kind+"/"+protocol, func(t *testing.T) {
				n := start(t, "n", Config{Security: security})
				c := raw(t, n)
				if _, err := c.Write([]byte(words)); err != nil {
					t.Fatal(err)
				}
				ended(t, c)
				n.log.wants(t, "not a peer: it speaks another protocol")
			})
		}
		t.Run(kind+"/dialed", func(t *testing.T) {
			n, address := start(t, "n", Config{Security: security}), speak(t, "-ERR unknown command\r\n")
			fails(t, n, address, "not a peer: it speaks another protocol")
			n.log.wants(t, `msg="peer does not fit this node" address=`+address)
		})
	}
}

// speak serves what says the same to everybody, once they have spoken.
func speak(t *testing.T, words string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 64<<10))
			_, _ = c.Write([]byte(words))
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func loadPair(t *testing.T, s Security) []tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{pair}
}
