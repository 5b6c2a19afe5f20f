package trial

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// HangUp is a reply that is none: the connection is closed.
const HangUp = "hang up"

const ok = "+OK\r\n"

// Answer is what a Server has to say to a command: an encoded reply, HangUp, or nothing, which leaves
// the client waiting. Connections ask side by side.
type Answer func(words []string) string

// Server speaks the Redis protocol and says what a test tells it to, also what real servers seldom say.
// It greets clients by itself: it knows no HELLO, and AUTH, CLIENT, PING and, unless SayInfo says otherwise,
// INFO are OK.
type Server struct {
	listener net.Listener
	answer   Answer
	wg       sync.WaitGroup

	mu    sync.Mutex
	info  string
	asked []string
	conns []net.Conn
}

// Serve starts a server on loopback, which answers for the length of the test.
func Serve(t testing.TB, answer Answer) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ServeOn(t, l, answer)
}

// ServeOn is Serve on a listener, which it closes.
func ServeOn(t testing.TB, l net.Listener, answer Answer) *Server {
	s := &Server{listener: l, answer: answer, info: ok}
	s.wg.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Asked are the commands that it was asked to answer, a line each.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// SayInfo sets the reply to INFO.
func (s *Server) SayInfo(reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = reply
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(c) })
	}
}

func (s *Server) stop() {
	s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *Server) serve(c net.Conn) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		reply := s.reply(words)
		if reply == HangUp {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func (s *Server) reply(words []string) string {
	switch strings.ToUpper(words[0]) {
	case "HELLO":
		return "-ERR unknown command\r\n"
	case "AUTH", "CLIENT", "PING":
		return ok
	case "INFO":
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.info
	}
	s.mu.Lock()
	s.asked = append(s.asked, strings.Join(words, " "))
	s.mu.Unlock()
	return s.answer(words)
}

func readCommand(in *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		var size int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		words[i] = string(text[:size])
	}
	return words, nil
}

// InTurn answers with one reply after the other, and with the last one for ever.
func InTurn(replies ...string) Answer {
	var mu sync.Mutex
	return func([]string) string {
		mu.Lock()
		defer mu.Unlock()
		reply := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		return reply
	}
}
