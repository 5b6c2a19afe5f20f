package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// FuzzConn throws bytes at a whole server. Whatever they are, the connection ends when the client is
// gone, nobody is left in line, and the replies are well formed.
func FuzzConn(f *testing.F) {
	for _, path := range []string{"semaphores", "connection", "transaction", "pubsub"} {
		text, err := os.ReadFile("testdata/" + path + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		var script strings.Builder
		for line := range strings.Lines(string(text)) {
			if cmd, ok := strings.CutPrefix(line, "> "); ok {
				script.WriteString(cmd)
				f.Add(cmd)
			}
		}
		f.Add(script.String())
	}
	for _, h := range hostile {
		f.Add("HELLO 3\r\n" + h)
	}
	f.Add("MULTI\r\nSEM.CREATE k 1\r\nHELLO\r\nEXEC\r\nSEM.ACQUIRE k\r\nSEM.ACQUIRE k WAIT 9999\r\nPING\r\n")
	f.Fuzz(func(t *testing.T, data string) {
		s := New(newFake(), testConfig())
		here, there := net.Pipe()
		served := make(chan struct{})
		go func() { s.ServeConn(there); close(served) }()
		read := make(chan error)
		go func() {
			r := bufio.NewReader(here)
			for {
				if _, err := readReply(r); err != nil {
					io.Copy(io.Discard, here)
					read <- err
					return
				}
			}
		}()
		here.SetWriteDeadline(time.Now().Add(patience))
		io.WriteString(here, data)
		here.Close()
		if err := <-read; !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a reply is malformed: %v", err)
		}
		select {
		case <-served:
		case <-time.After(patience):
			t.Fatalf("still served after %q", data)
		}
		for key := range s.backend.(*fake).sems {
			if _, waiting := s.backend.(*fake).held(key); waiting != 0 {
				t.Errorf("%d wait for %q", waiting, key)
			}
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
