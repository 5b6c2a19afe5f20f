package proxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

const (
	// dialTimeout is how long a node may take to accept what the proxy passes on.
	dialTimeout = 5 * time.Second
	// chunkSize is how many bytes go on together, and queueLength how many chunks may be on their way:
	// what a network between them would hold.
	chunkSize   = 16 << 10
	queueLength = 64
)

// conn is one connection, dialled along its link.
type conn struct {
	network *Network
	link    Link
	dialled *net.TCPConn
	done    chan struct{} // closed by reset

	mu     sync.Mutex
	target *net.TCPConn
	ended  bool
}

func newConn(w *Network, l Link, dialled *net.TCPConn) *conn {
	return &conn{network: w, link: l, dialled: dialled, done: make(chan struct{})}
}

// reset ends both sides at once, with RST.
func (c *conn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	close(c.done)
	abort(c.dialled)
	if c.target != nil {
		abort(c.target)
	}
}

func abort(c *net.TCPConn) {
	// Errors mean that it has ended already.
	_ = c.SetLinger(0)
	_ = c.Close()
}

// serve passes on what comes, until both sides have ended.
func (c *conn) serve(address string) {
	defer c.reset()
	if !c.passable(c.link) {
		return
	}
	target, err := net.DialTimeout("tcp", address, dialTimeout)
	if err != nil {
		return // reset tells the caller that nobody is there
	}
	if !c.connected(target.(*net.TCPConn)) {
		return
	}
	var streams sync.WaitGroup
	streams.Go(func() { c.pass(c.link, c.dialled, c.target) })
	streams.Go(func() { c.pass(Link{c.link.To, c.link.From}, c.target, c.dialled) })
	streams.Wait()
}

func (c *conn) connected(target *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		abort(target)
		return false
	}
	c.target = target
	return true
}

// passable waits until the link lets bytes pass. It reports false when the connection has ended.
func (c *conn) passable(l Link) bool {
	for {
		rule, changed := c.network.rule(l)
		if !rule.Hold {
			return true
		}
		select {
		case <-changed:
		case <-c.done:
			return false
		}
	}
}

// chunk is bytes on their way, or the end of them.
type chunk struct {
	bytes []byte
	due   time.Time
	err   error // what came after the bytes; nil: more
}

// pass moves bytes from one side to the other, as the link's rule says.
func (c *conn) pass(l Link, from, to *net.TCPConn) {
	queue := make(chan chunk, queueLength)
	var reader sync.WaitGroup
	reader.Go(func() { c.read(l, from, queue) })
	c.write(l, to, queue)
	reader.Wait()
}

func (c *conn) read(l Link, from *net.TCPConn, queue chan<- chunk) {
	defer close(queue)
	last := time.Time{}
	for {
		buf := make([]byte, chunkSize)
		n, err := from.Read(buf)
		rule, _ := c.network.rule(l)
		late := rule.Delay
		if rule.Jitter > 0 {
			late += rand.N(rule.Jitter)
		}
		if due := time.Now().Add(late); due.After(last) {
			last = due // bytes do not overtake each other
		}
		select {
		case queue <- chunk{buf[:n], last, err}:
		case <-c.done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *conn) write(l Link, to *net.TCPConn, queue <-chan chunk) {
	gone := false
	for piece := range queue {
		if !c.until(piece.due) || !c.passable(l) {
			continue // ended: drain the queue
		}
		// A side that is gone is noticed by the stream out of it, which tells the other side if its link
		// lets it.
		if !gone {
			_, err := to.Write(piece.bytes)
			gone = err != nil
		}
		if rule, _ := c.network.rule(l); rule.Rate > 0 {
			c.until(time.Now().Add(time.Duration(len(piece.bytes)) * time.Second / time.Duration(rule.Rate)))
		}
		switch {
		case errors.Is(piece.err, io.EOF):
			_ = to.CloseWrite() // fails only where nobody is left to be told
		case piece.err != nil:
			c.reset()
		}
	}
}

// until waits for a moment. It reports false when the connection has ended before.
func (c *conn) until(moment time.Time) bool {
	left := time.Until(moment)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.done:
		return false
	}
}
