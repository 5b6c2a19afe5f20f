package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semserver/semserver/semaphore"
)

const (
	// Accept pauses between these bounds when it fails, so that a process out of file descriptors
	// does not spin.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
	// refusalPatience is how long a connection that is turned away may take to be told so.
	refusalPatience = 100 * time.Millisecond
)

// Server speaks the Redis protocol to any number of clients, in front of a backend. Its methods may
// be called from many goroutines at once.
type Server struct {
	backend semaphore.Backend
	cfg     Config
	metrics *Metrics
	table   *table
	buffers bufferPool
	rules   rules // a connection adds its label
	started time.Time
	runID   string
	ids     atomic.Uint64
	// probeEvery is how often a client that has sent all that is read ahead is looked at for a hang-up.
	probeEvery time.Duration

	stop chan struct{}  // closed when the server stops
	work sync.WaitGroup // listeners and connections

	mu        sync.Mutex // guards what follows
	stopped   bool
	listeners map[net.Listener]struct{}
	conns     map[uint64]*conn
	byAddress map[string]int
}

// New returns a server that is ready to serve. A DefaultCapacity pattern longer than a key can be
// matches nothing.
func New(backend semaphore.Backend, cfg Config) *Server {
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	s := &Server{
		backend: backend,
		cfg:     cfg,
		metrics: cfg.Metrics,
		table:   newTable(),
		rules:   rules{maxWait: cfg.MaxWait, maxLease: cfg.MaxLease},
		started: time.Now(),
		runID:   rand.Text(),

		probeEvery: probeEvery,
		stop:       make(chan struct{}),
		listeners:  map[net.Listener]struct{}{},
		conns:      map[uint64]*conn{},
		byAddress:  map[string]int{},
	}
	s.metrics.describe(s.table)
	for _, r := range cfg.DefaultCapacity {
		if len(r.Pattern) <= maxPattern {
			s.rules.capacities = append(s.rules.capacities, capacityRule{compileGlob(r.Pattern), r.Capacity})
		}
	}
	return s
}

// Serve accepts connections from l until the server stops, which is no error, or l is closed by
// somebody else. It closes l.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.begin(func() { s.listeners[l] = struct{}{} }) {
		return nil
	}
	defer s.end(func() { delete(s.listeners, l) })
	pause := minAcceptPause
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			pause = minAcceptPause
			s.accept(c)
			continue
		case s.stopping():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		}
		s.cfg.Logger.Warn("accept failed", "address", l.Addr().String(), "error", err, "pause", pause)
		select {
		case <-time.After(pause):
		case <-s.stop:
		}
		pause = min(2*pause, maxAcceptPause)
	}
}

// begin registers a piece of work under the lock; it returns false when the server has stopped.
func (s *Server) begin(register func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.work.Add(1)
	register()
	return true
}

func (s *Server) end(unregister func()) {
	s.mu.Lock()
	unregister()
	s.mu.Unlock()
	s.work.Done()
}

// accept serves a connection in a goroutine of its own, or turns it away.
func (s *Server) accept(c net.Conn) {
	client := s.newConn(c)
	if why := s.admit(client); why != nil {
		s.turnAway(c, why)
		return
	}
	tune(c)
	go s.serve(client)
}

// turnAway says why and closes. It does not wait: the buffer of a fresh socket has room. Under TLS
// nothing can be said before a handshake, which would.
func (s *Server) turnAway(c net.Conn, why *semaphore.Error) {
	s.metrics.turnedAway.Inc()
	if beneath(c) == c {
		c.SetWriteDeadline(time.Now().Add(refusalPatience))
		_, _ = io.WriteString(c, "-"+why.Error()+"\r\n") // it is closed either way
	}
	c.Close()
}

// ServeConn serves one connection, whatever the limits on connections say, and returns when it has
// ended.
func (s *Server) ServeConn(c net.Conn) {
	client := s.newConn(c)
	if !s.begin(func() { s.addLocked(client) }) {
		c.Close()
		return
	}
	s.serve(client)
}

func (s *Server) addLocked(c *conn) {
	s.conns[c.id] = c
	s.byAddress[host(c.remote)]++
}

func (s *Server) serve(c *conn) {
	s.metrics.connections.Inc()
	c.serve()
	s.metrics.connections.Dec()
	s.end(func() {
		delete(s.conns, c.id)
		h := host(c.remote)
		if s.byAddress[h]--; s.byAddress[h] == 0 {
			delete(s.byAddress, h)
		}
	})
}

func (s *Server) newConn(c net.Conn) *conn {
	client := &conn{
		server: s,
		net:    c,
		socket: newSocket(c),
		id:     s.ids.Add(1),
		remote: address(c.RemoteAddr()),
		local:  address(c.LocalAddr()),
		born:   time.Now(),
		rules:  s.rules,
		in:     reader{limits: &s.cfg.Wire, pool: &s.buffers},
		out:    output{pool: &s.buffers},
	}
	client.spoke.Store(client.born.UnixMilli())
	client.reset()
	return client
}

// admit registers a connection, or returns why it is turned away.
func (s *Server) admit(c *conn) *semaphore.Error {
	tcp, _ := c.net.RemoteAddr().(*net.TCPAddr)
	beyond := tcp != nil && !tcp.IP.IsLoopback()
	if beyond && s.cfg.Protected && s.cfg.Password == "" {
		return errProtected
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.cfg.MaxClientsPerAddress
	switch {
	case s.stopped:
		return semaphore.ErrShutdown
	case len(s.conns) >= s.cfg.MaxClients:
		return errMaxClients
	case beyond && limit > 0 && s.byAddress[host(c.remote)] >= limit:
		return errMaxClients
	}
	s.work.Add(1)
	s.addLocked(c)
	return nil
}

// address is how a peer is shown; peers on a unix socket have no address of their own.
func address(a net.Addr) string {
	if a == nil || a.String() == "" || a.String() == "@" {
		return "unix"
	}
	return a.String()
}

// host is the part of an address that connections from one machine share.
func host(address string) string {
	h, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return h
}

func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// Shutdown stops accepting, answers those who wait in line with SHUTDOWN unless their grant came
// first, lets every connection finish what it has received, and closes it. When ctx ends before that
// is done, connections are cut and the cause is returned. Either way no goroutine is left.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, c := range s.halt() {
		c.net.SetReadDeadline(time.Unix(1, 0))
	}
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range s.clients() {
		c.cut()
	}
	<-done
	return context.Cause(ctx)
}

// halt makes the server stop, closes its listeners and returns the connections there are.
func (s *Server) halt() []*conn {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		close(s.stop)
	}
	listeners := s.listeners
	s.listeners = map[net.Listener]struct{}{}
	s.mu.Unlock()
	for l := range listeners {
		l.Close()
	}
	return s.clients()
}

// clients returns the connections there are, in no order.
func (s *Server) clients() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		all = append(all, c)
	}
	return all
}

// client returns the connection of that id, or nil.
func (s *Server) client(id uint64) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[id]
}

// cut ends a connection from another goroutine, without the farewell of TLS, which may block.
func (c *conn) cut() { beneath(c.net).Close() }
