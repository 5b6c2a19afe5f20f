package remote

import (
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Replies of a server.
const (
	say0 = ":0\r\n"
	say1 = ":1\r\n"
)

// always answers the same.
func always(reply string) trial.Answer { return trial.InTurn(reply) }

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
