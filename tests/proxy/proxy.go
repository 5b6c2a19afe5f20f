// Package proxy stands between a client and a server and breaks the network between them, for tests.
package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// state is what becomes of bytes, by direction.
type state int

const (
	open   state = iota // passed on
	silent              // kept from both sides; connections stay
	deaf                // requests are passed on, answers are thrown away
	shut                // connections are refused
)

// Proxy listens on an address of its own and passes on what comes to a server. Its methods may be called
// from any goroutine.
type Proxy struct {
	Addr string

	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	state state
	turn  chan struct{} // closed when the state changes
	conns map[net.Conn]bool
}

// Start begins to pass on connections to the target.
func Start(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, turn: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Silence cuts the network as a pulled cable does: nothing arrives, and nobody is told.
func (p *Proxy) Silence() { p.set(silent) }

// Deafen loses every answer.
func (p *Proxy) Deafen() { p.set(deaf) }

// Shut ends all connections and refuses new ones, as a server that is gone does.
func (p *Proxy) Shut() {
	p.set(shut)
	p.Break()
}

// Restore mends the network. What was kept back arrives.
func (p *Proxy) Restore() { p.set(open) }

// Break ends all connections. New ones may be made.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Close ends everything and waits for it.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Shut()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) set(s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	close(p.turn)
	p.turn = make(chan struct{})
}

func (p *Proxy) look() (state, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.turn
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

// track notes a connection, so that Break finds it, unless connections are refused.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == shut {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve(client net.Conn) {
	if !p.track(client) {
		return
	}
	defer p.forget(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.track(server) {
		return
	}
	defer p.forget(server)
	var answers sync.WaitGroup
	answers.Go(func() {
		p.pump(server, client, true)
		_ = client.Close()
	})
	p.pump(client, server, false)
	_ = server.Close()
	answers.Wait()
}

// pump passes on bytes until one side ends.
func (p *Proxy) pump(from io.Reader, to io.Writer, answers bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.pass(to, buf[:n], answers) {
			return
		}
		if err != nil {
			p.pass(to, nil, false) // the end is news as well
			return
		}
	}
}

// pass passes on some bytes when the network lets it.
func (p *Proxy) pass(to io.Writer, bytes []byte, answers bool) bool {
	for {
		s, turn := p.look()
		switch {
		case s == silent:
			<-turn
			continue
		case s == deaf && answers:
			return true
		case s == shut:
			return false
		}
		_, err := to.Write(bytes)
		return err == nil
	}
}
