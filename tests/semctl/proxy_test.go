package semctl

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is an address of its own that leads to a server, until it is cut.
type proxy struct {
	net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

// startProxy leads to a server for the length of the test.
func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, target: target}
	p.wg.Go(p.accept)
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) accept() {
	for {
		near, err := p.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(near, far) {
			_ = near.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			p.wg.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
			})
		}
	}
}

// keep remembers connections for the cut. It reports false when that has come.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	return !p.isCut
}

// cut closes the address and every connection through it.
func (p *proxy) cut() {
	_ = p.Close()
	p.mu.Lock()
	p.isCut = true
	conns := p.conns
	p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	p.wg.Wait()
}
