package client

import (
	"context"
	"errors"
	"net"
	"testing"
)

// A server that ends the connection may have read the question, which changes nothing: so what is asked for
// next counts as asked for the first time.
func TestQuestionWhetherAServerIsReadyLeavesNoDoubt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
	c, err := New(Config{Addrs: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}

	err = c.ready(context.Background(), c.nodes.current())

	var none *unanswered
	if !errors.As(err, &none) || none.sent {
		t.Errorf("got %v, want it unanswered and without an effect", err)
	}
	if err := errors.Join(c.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	<-done
}
