package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// overTLS serves r on another listener, under TLS, and returns how to dial it.
func (r *rig) overTLS(t *testing.T) func() *client {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"semserver"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	go r.Serve(l)
	return func() *client {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		return newClient(t, c)
	}
}

func TestWaitingOverTLS(t *testing.T) {
	r, a := full(t)
	dial := r.overTLS(t)
	b := dial().raw(request("PING") + request("SEM.ACQUIRE k HOLDER b WAIT 60000") + request("ECHO after"))
	b.want("+PONG\r\n")
	r.waits(t, "k", 1, 1)
	b.send("SEM.RELEASE k b")
	a.send("SEM.RELEASE k a").want(":1\r\n")
	b.want(grantOf("b", 2) + "$5\r\nafter\r\n:1\r\n")
	b.send("PING").want("+PONG\r\n")
}

func TestHangUpOverTLS(t *testing.T) {
	for name, leave := range map[string]func(*tls.Conn){
		"farewell": func(c *tls.Conn) { c.Close() },
		"half":     func(c *tls.Conn) { c.CloseWrite() },
		"cut":      func(c *tls.Conn) { c.NetConn().Close() },
		"reset":    func(c *tls.Conn) { c.NetConn().(*net.TCPConn).SetLinger(0); c.NetConn().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r, a := full(t)
			dial := r.overTLS(t)
			b := dial().send("SEM.ACQUIRE k HOLDER b WAIT 60000")
			r.waits(t, "k", 1, 1)
			leave(b.Conn.(*tls.Conn))
			if name == "half" {
				b.want("*-1\r\n")
			}
			r.waits(t, "k", 1, 0)
			b = dial().send("SEM.ACQUIRE k HOLDER c WAIT 60000")
			r.waits(t, "k", 1, 1)
			leave(b.Conn.(*tls.Conn))
			if name != "half" {
				a.send("SEM.RELEASE k a").want(":1\r\n")
				r.waits(t, "k", 0, 0)
			}
		})
	}
}
