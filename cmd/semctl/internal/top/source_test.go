package top

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// serve answers every command by its first two words, for the length of the test.
func serve(t *testing.T, replies map[string]string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c, replies)
		}
	}()
	return l.Addr().String()
}

func answer(c net.Conn, replies map[string]string) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		var n, size int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
			return
		}
		words := make([]string, n, n+1)
		for i := range words {
			_, _ = fmt.Fscanf(in, "$%d\r\n", &size)
			text := make([]byte, size+2)
			_, _ = io.ReadFull(in, text)
			words[i] = string(text[:size])
		}
		if strings.EqualFold(words[0], "hello") {
			_, _ = io.WriteString(c, "-ERR unknown command\r\n")
			continue
		}
		reply, ok := replies[strings.Join(append(words, "")[:2], " ")]
		if !ok {
			reply = "+PONG\r\n"
		}
		_, _ = io.WriteString(c, reply)
	}
}

func TestLookIsMadeOfAllThatServersTell(t *testing.T) {
	replies := map[string]string{
		"SEM.SCAN 0":      "*2\r\n$1\r\n0\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
		"SEM.INFO a":      "*4\r\n$4\r\nname\r\n$1\r\na\r\n$6\r\nin_use\r\n:2\r\n",
		"SEM.INFO b":      "*2\r\n$4\r\nname\r\n$1\r\nb\r\n",
		"SEM.INFO c":      "*2\r\n$4\r\nname\r\n$1\r\nc\r\n",
		"SEM.NODE LIST":   "*1\r\n*4\r\n$5\r\nlabel\r\n$1\r\nx\r\n$4\r\nrole\r\n$6\r\nleader\r\n",
		"SEM.HOLDERS a":   "*2\r\n$1\r\n0\r\n*1\r\n*7\r\n$1\r\nh\r\n:7\r\n:0\r\n:1\r\n:900\r\n:5\r\n$1\r\nc\r\n",
		"SEM.WAITERS a":   "*2\r\n$1\r\n0\r\n*1\r\n*5\r\n$1\r\nw\r\n:1\r\n:5\r\n:900\r\n$1\r\nc\r\n",
		"SEM.RELEASE a":   ":1\r\n",
		"SEM.CANCEL a":    ":0\r\n",
		"SEM.HOLDERS raw": "-NOSEM no such semaphore\r\n",
	}
	addr := serve(t, replies)
	asked := remote.Open(remote.Config{Addrs: []string{addr, "127.0.0.1:1"}, Patience: 20 * time.Second})
	defer asked.Close()
	s := servers{asked, "*", 2}

	look, err := s.look(t.Context())

	if err != nil || len(look.Semaphores) != 2 || !look.Cut || look.Semaphores[0].InUse != 2 {
		t.Errorf("got %+v, %v, want two of three semaphores", look, err)
	}
	if fmt.Sprint(look.Nodes) != "[{x  leader}]" || len(look.Away) != 1 || look.Away[0].Addr != "127.0.0.1:1" {
		t.Errorf("got the nodes %v, away %v, want x, and the second address away", look.Nodes, look.Away)
	}
	d, err := s.detail(t.Context(), "a")
	if err != nil || len(d.Holders) != 1 || len(d.Waiters) != 1 || d.Holders[0].Token != 7 {
		t.Fatalf("got %+v, %v, want a holder and a waiter", d, err)
	}
	if done, err := s.release(t.Context(), "a", d.Holders[0]); !done || err != nil {
		t.Errorf("release: got %v, %v, want it done", done, err)
	}
	if done, err := s.cancel(t.Context(), "a", d.Waiters[0]); done || err != nil {
		t.Errorf("cancel: got %v, %v, want that there was nothing to do", done, err)
	}
	if d, err := s.detail(t.Context(), "raw"); err == nil {
		t.Errorf("detail of what is not there: got %+v, want an error", d)
	}
}

func TestLookGoesWithoutNodesWhereThereIsNoCluster(t *testing.T) {
	addr := serve(t, map[string]string{"SEM.SCAN 0": "*2\r\n$1\r\n0\r\n*0\r\n", "SEM.NODE LIST": "-ERR this node has no peers\r\n"})
	asked := remote.Open(remote.Config{Addrs: []string{addr}, Patience: 20 * time.Second})
	defer asked.Close()

	look, err := servers{asked, "*", 10}.look(t.Context())

	if err != nil || len(look.Nodes) != 0 || look.Cut {
		t.Errorf("got %+v, %v, want a look without nodes", look, err)
	}
}
