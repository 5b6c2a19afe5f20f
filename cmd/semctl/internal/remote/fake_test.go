package remote

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// Replies of a fake server that are none.
const (
	hangUp = "hang up"
	say0   = ":0\r\n"
	say1   = ":1\r\n"
	sayOK  = "+OK\r\n"
)

// fake is a server that answers as a test says.
type fake struct {
	net.Listener
	answer func(words []string) string // an encoded reply; hangUp; empty: none, ever
	wg     sync.WaitGroup

	mu    sync.Mutex
	asked []string // what came, but for the handshake
	conns []net.Conn
}

// startFake answers for the length of the test.
func startFake(t *testing.T, answer func(words []string) string) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveFake(t, l, answer)
}

func serveFake(t *testing.T, l net.Listener, answer func(words []string) string) *fake {
	f := &fake{Listener: l, answer: answer}
	f.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			f.wg.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(f.stop)
	return f
}

func (f *fake) stop() {
	_ = f.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

func (f *fake) addr() string { return f.Addr().String() }

// heard are the commands that came, a line each.
func (f *fake) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, "\n")
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		reply := ""
		switch strings.ToUpper(words[0]) {
		case "HELLO":
			reply = "-ERR unknown command\r\n"
		case "AUTH", "CLIENT", "INFO", "PING":
			reply = sayOK
		default:
			f.mu.Lock()
			f.asked = append(f.asked, strings.Join(words, " "))
			f.mu.Unlock()
			reply = f.answer(words)
		}
		if reply == hangUp {
			return
		}
		_, _ = io.WriteString(c, reply)
	}
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

// inTurn answers with one reply after the other, and with the last one for ever.
func inTurn(replies ...string) func([]string) string {
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

// always answers the same.
func always(reply string) func([]string) string { return inTurn(reply) }

// open returns servers for the length of the test.
func open(t *testing.T, patience time.Duration, addrs ...string) *Servers {
	t.Helper()
	s := Open(Config{Addrs: addrs, Patience: patience})
	t.Cleanup(s.Close)
	return s
}

// refusing is an address at which nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
