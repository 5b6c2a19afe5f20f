package tests

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// malformed are requests that must be refused by a protocol error and the end of the connection.
func malformed() []string {
	return []string{
		"*1\r\n$9223372036854775807\r\n",          // a length that overflows when 2 is added
		"*9223372036854775807\r\n",                // more arguments than there can be
		"*1000000000\r\n",                         // more than anybody sends
		"*1\r\n$2000000000\r\nx",                  // a bulk larger than memory
		"*1\r\n$-2\r\n",                           // a negative length
		"*1\r\n$abc\r\n",                          // no number
		"*1\r\n:5\r\n",                            // not a bulk
		"*2\r\n$4\r\nPING\r\n+x\r\n",              // the second argument is not a bulk
		"*1\r\n$4\r\nPINGxx",                      // no end of the bulk
		"POST / HTTP/1.1\r\nHost: x\r\n\r\n",      // a browser sent by somebody else
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r", // the same with GET
		strings.Repeat("x", 200_000),              // an inline command without an end
		"ECHO \"unbalanced\r\n",                   // a quote that does not end
	}
}

func TestMalformedBytesAreRefusedAndHurtNobody(t *testing.T) {
	t.Parallel()
	n := start(t)
	other := dial(t, n)
	for _, bytes := range malformed() {
		c := dial(t, n)
		_, _ = c.Write([]byte(bytes)) // the server may hang up before it has read all
		reply, err := io.ReadAll(io.LimitReader(deadlined(c), 1<<20))
		if errors.Is(err, errStill) {
			t.Errorf("%.40q: neither refused nor closed", bytes)
		}
		if text := string(reply); text != "" && !strings.Contains(text, "-ERR") {
			t.Errorf("%.40q: got %q, want an error", bytes, text)
		}
		other.want("PONG", "PING")
	}
}

var errStill = errors.New("still open")

// deadlined reads from a connection that must end soon.
func deadlined(c *client) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return 0, err
		}
		n, err := c.Conn.Conn.Read(p)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return n, errStill
		}
		return n, err
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// memoryLimit is what a node may occupy under attack; the race detector takes several times as much.
const memoryLimit = 1 << 30

// TestHostileClientsAreNotNoticed lets clients misbehave for some seconds beside four that work.
func TestHostileClientsAreNotNoticed(t *testing.T) {
	n := start(t)
	c := dial(t, n)
	c.want("OK", "SEM.CREATE", "pool", 2)
	calm := serveWorkers(t, n, 2*time.Second)

	stop := make(chan struct{})
	var hostile sync.WaitGroup
	for _, attack := range []func(n *node.Node, stop <-chan struct{}){neverRead, neverRead, sendSlowly, openAndDrop, talkNonsense} {
		hostile.Go(func() { attack(n, stop) })
	}
	attacked := serveWorkers(t, n, 6*time.Second)
	resident, err := n.Resident()
	close(stop)
	hostile.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("p99 of a round: %v alone, %v beside hostile clients; %d MiB resident", calm, attacked, resident>>20)
	if resident > memoryLimit {
		t.Errorf("memory: got %d bytes, want at most %d", resident, memoryLimit)
	}
	if limit := 10*calm + time.Second; attacked > limit {
		t.Errorf("p99 of a round beside hostile clients: got %v, want at most %v", attacked, limit)
	}
	if err := c.books("pool", 0, 2, 0); err != nil {
		t.Error(err)
	}
	c.want("PONG", "PING")
}

// serveWorkers runs four clients that acquire and release in turn; each must be served within its
// WAIT. It returns the p99 of a round.
func serveWorkers(t *testing.T, n *node.Node, d time.Duration) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var rounds []time.Duration
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for w := range 4 {
		c := dial(t, n)
		all.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				began := time.Now()
				holder := fmt.Sprint(w, "-", i)
				reply, err := c.Do("SEM.ACQUIRE", "pool", "HOLDER", holder, "WAIT", patience.Milliseconds())
				if _, refused := asGrant(reply); err != nil || refused != nil {
					t.Errorf("acquire beside hostile clients: %v, %v", reply, err)
					return
				}
				if reply, err = c.Do("SEM.RELEASE", "pool", holder); err != nil || reply != int64(1) {
					t.Errorf("release beside hostile clients: %v, %v", reply, err)
					return
				}
				mu.Lock()
				rounds = append(rounds, time.Since(began))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(rounds) == 0 {
		t.Fatal("nobody was served")
	}
	slices.Sort(rounds)
	return rounds[len(rounds)*99/100]
}

// attackers dials again and again until it is told to stop.
func attackers(n *node.Node, stop <-chan struct{}, attack func(c *resp.Conn)) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		c, err := resp.Dial(n.Addr)
		if err != nil {
			continue
		}
		attack(c)
		_ = c.Close()
	}
}

// neverRead asks for long replies and reads none.
func neverRead(n *node.Node, stop <-chan struct{}) {
	commands := resp.Encode(nil, "ECHO", strings.Repeat("x", 10_000))
	for range 5 {
		commands = append(commands, commands...)
	}
	attackers(n, stop, func(c *resp.Conn) {
		for {
			_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			if _, err := c.Write(commands); err != nil && !errors.Is(err, net.ErrClosed) {
				select {
				case <-stop:
				case <-time.After(100 * time.Millisecond):
				}
				return
			}
		}
	})
}

// sendSlowly keeps fifty connections that send a byte a second.
func sendSlowly(n *node.Node, stop <-chan struct{}) {
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			attackers(n, stop, func(c *resp.Conn) {
				for _, b := range resp.Encode(nil, "SEM.ACQUIRE", "pool", "HOLDER", "slow") {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					select {
					case <-stop:
						return
					case <-time.After(time.Second):
					}
				}
			})
		})
	}
	all.Wait()
}

// openAndDrop makes thousands of connections, each dropped at once, in any way.
func openAndDrop(n *node.Node, stop <-chan struct{}) {
	var made atomic.Int64
	attackers(n, stop, func(c *resp.Conn) {
		switch made.Add(1) % 4 {
		case 0:
			_ = c.Reset()
		case 1:
			_, _ = c.Write([]byte("*3\r\n$11\r\nSEM.ACQ"))
		case 2:
			_ = c.Send("SEM.ACQUIRE", "pool", "PERMITS", 3)
		}
	})
}

// talkNonsense sends what is no protocol.
func talkNonsense(n *node.Node, stop <-chan struct{}) {
	all := malformed()
	next := 0
	attackers(n, stop, func(c *resp.Conn) {
		_, _ = c.Write([]byte(all[next%len(all)]))
		next++
		_, _ = c.Receive(50 * time.Millisecond)
	})
}
