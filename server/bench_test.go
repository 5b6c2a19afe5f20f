package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
)

// instant grants everything at once, or lets everybody wait.
type instant struct{}

func (b *instant) GiveBack(string, *semaphore.Grant) {}

func (b *instant) Do(requests []semaphore.Request) []semaphore.Reply {
	replies := make([]semaphore.Reply, len(requests))
	for i, q := range requests {
		a, ok := q.(semaphore.Acquire)
		switch {
		case ok && a.Wait > 0:
			done := make(chan semaphore.Reply, 1)
			replies[i].Value = &semaphore.Waiting{Done: done, Leave: sync.OnceFunc(func() { done <- semaphore.Reply{} })}
		case ok:
			replies[i].Value = &semaphore.Grant{Holder: a.Holder, Token: 1796060785225900, Slots: []semaphore.Range{{}}, Lease: 30 * time.Second}
		default:
			replies[i].Value = semaphore.Number(1)
		}
	}
	return replies
}

// BenchmarkAcquire is 50 connections that each keep a pipeline of commands in flight; the clients
// share the machine.
func BenchmarkAcquire(b *testing.B) {
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprintf("pipeline=%d", depth), func(b *testing.B) {
			const conns = 50
			s, addr := serveInstant(b)
			defer s.Shutdown(context.Background())
			pipeline := strings.Repeat(request("SEM.ACQUIRE benchmark HOLDER 0123456789abcdef LEASE 60000"), depth)
			reply := "*5\r\n$16\r\n0123456789abcdef\r\n:1796060785225900\r\n:0\r\n:30000\r\n:0\r\n"
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range conns {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					b.Fatal(err)
				}
				wg.Go(func() {
					defer c.Close()
					answer := make([]byte, depth*len(reply))
					for i := 0; i < b.N/conns/depth+1; i++ {
						io.WriteString(c, pipeline)
						if _, err := io.ReadFull(c, answer); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
		})
	}
}

// script is a connection whose client sends the same bytes so many times and takes every answer at
// once: what remains to be measured on it is the server.
type script struct {
	net.Conn
	bytes string
	times int
	sent  int // of bytes, this time
}

func (s *script) Read(b []byte) (int, error) {
	if s.sent == len(s.bytes) {
		s.sent, s.times = 0, s.times-1
	}
	if s.times == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.bytes[s.sent:])
	s.sent += n
	return n, nil
}

func (s *script) Write(b []byte) (int, error)      { return len(b), nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 51234} }
func (s *script) LocalAddr() net.Addr              { return s.RemoteAddr() }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) Close() error                     { return nil }

// BenchmarkServe is what one connection's goroutine does for each acquire, system calls and the
// backend left out.
func BenchmarkServe(b *testing.B) {
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprintf("pipeline=%d", depth), func(b *testing.B) {
			s := New(&instant{}, testConfig())
			pipeline := strings.Repeat(request("SEM.ACQUIRE benchmark HOLDER 0123456789abcdef LEASE 60000"), depth)
			b.ReportAllocs()
			s.ServeConn(&script{bytes: pipeline, times: b.N/depth + 1})
		})
	}
}

func serveInstant(t testing.TB) (*Server, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(&instant{}, testConfig())
	go s.Serve(l)
	return s, l.Addr().String()
}

func TestWaitingConnectionsNeedLittleMemory(t *testing.T) {
	const conns, most = 2000, 20 << 10
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := New(&instant{}, testConfig())
	go s.Serve(l)
	defer s.Shutdown(context.Background())
	clients := make([]net.Conn, conns)
	before := inUse()
	for i := range clients {
		if clients[i], err = net.Dial("unix", path); err != nil {
			t.Fatal(err)
		}
		defer clients[i].Close()
		io.WriteString(clients[i], request(fmt.Sprintf("SEM.ACQUIRE k HOLDER h%d WAIT 60000", i)))
	}
	trial.Until(t, "all wait", func() bool { return value(s.metrics.waiting) == conns })
	each := (inUse() - before) / conns
	t.Logf("%d bytes per waiting connection, its client in this process included", each)
	if each > most {
		t.Errorf("%d bytes per waiting connection, want at most %d", each, most)
	}
}

// inUse is the memory of heap and stacks after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func TestServeOnUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, func(c *Config) { c.MaxClientsPerAddress = 1 })
	go r.Serve(l)
	dial := func() *client {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		return newClient(t, c)
	}
	a, b := dial(), dial()
	a.send("SEM.CREATE k 1").want("+OK\r\n")
	a.send("SEM.ACQUIRE k HOLDER a").want(grantOf("a", 1))
	b.send("SEM.ACQUIRE k HOLDER b WAIT 60000")
	r.waits(t, "k", 1, 1)
	a.send("SEM.WAITERS k").want("*2\r\n$1\r\n0\r\n*1\r\n*5\r\n$1\r\nb\r\n:1\r\n:0\r\n:0\r\n$4\r\nunix\r\n")
	b.Close()
	r.waits(t, "k", 1, 0)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("socket: %v", err)
	}
}

// BenchmarkHandOver is the time from a release to the grant of the next in line, and beside it that
// of a plain acquire.
func BenchmarkHandOver(b *testing.B) {
	r, a := full(b)
	next := r.dial(b)
	a.SetDeadline(time.Time{})
	next.SetDeadline(time.Time{})
	var handOver, plain time.Duration
	holder := "a"
	for i := range b.N {
		h := fmt.Sprint("h", i)
		next.send("SEM.ACQUIRE k WAIT 60000 HOLDER " + h)
		r.waits(b, "k", 1, 1)
		began := time.Now()
		a.send("SEM.RELEASE k " + holder)
		next.reply()
		handOver += time.Since(began)
		a.reply()
		began = time.Now()
		next.send("SEM.ACQUIRE k HOLDER " + h).reply()
		plain += time.Since(began)
		holder = h
	}
	b.ReportMetric(float64(handOver.Microseconds())/float64(b.N), "µs/hand-over")
	b.ReportMetric(float64(plain.Microseconds())/float64(b.N), "µs/acquire")
}
