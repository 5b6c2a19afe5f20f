package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// kind is what a reply is.
type kind byte

const (
	kindNull kind = iota
	kindStatus
	kindError
	kindNumber
	kindText
	kindArray
)

// reply is an answer, as far as a load looks at it.
type reply struct {
	kind   kind
	number int64  // of kindNumber
	text   string // of kindError and kindText
}

// conn is one connection. Commands are collected by add, and sent together by flush.
type conn struct {
	net net.Conn
	in  *bufio.Reader
	out []byte
}

// dial connects and authenticates.
func dial(ctx context.Context, addr string, cfg remote.Config) (*conn, error) {
	n, err := remote.Dial(ctx, addr, cfg.TLS)
	if err != nil {
		return nil, err
	}
	c := &conn{net: n, in: bufio.NewReaderSize(n, 32<<10)}
	if cfg.Password == "" {
		return c, nil
	}
	if _, err := c.do("AUTH", cfg.Password); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return c, nil
}

// add collects a command. A word is a string or an int64.
func (c *conn) add(words ...any) {
	c.out = append(c.out, '*')
	c.out = strconv.AppendInt(c.out, int64(len(words)), 10)
	c.out = append(c.out, "\r\n"...)
	var digits [20]byte
	for _, w := range words {
		switch w := w.(type) {
		case string:
			c.out = appendHead(c.out, len(w))
			c.out = append(c.out, w...)
		case int64:
			text := strconv.AppendInt(digits[:0], w, 10)
			c.out = appendHead(c.out, len(text))
			c.out = append(c.out, text...)
		}
		c.out = append(c.out, "\r\n"...)
	}
}

func appendHead(out []byte, length int) []byte {
	out = append(out, '$')
	out = strconv.AppendInt(out, int64(length), 10)
	return append(out, "\r\n"...)
}

// flush sends what was added, and allows that long for the replies.
func (c *conn) flush(limit time.Duration) error {
	if err := c.net.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := c.net.Write(c.out)
	c.out = c.out[:0]
	return err
}

// do sends one command and returns its reply; an error reply is an error.
func (c *conn) do(words ...any) (reply, error) {
	c.add(words...)
	if err := c.flush(answerTime); err != nil {
		return reply{}, err
	}
	r, err := c.read()
	if err == nil && r.kind == kindError {
		err = errors.New(r.text)
	}
	return r, err
}

// read reads one reply.
func (c *conn) read() (reply, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return reply{}, err
	}
	if len(line) < 3 {
		return reply{}, fmt.Errorf("not the Redis protocol: %q", line)
	}
	mark, rest := line[0], line[1:len(line)-2]
	switch mark {
	case '+':
		return reply{kind: kindStatus}, nil
	case '-':
		return reply{kind: kindError, text: string(rest)}, nil
	}
	n, err := strconv.ParseInt(string(rest), 10, 64)
	if err != nil {
		return reply{}, fmt.Errorf("not the Redis protocol: %q", line)
	}
	switch {
	case mark == ':':
		return reply{kind: kindNumber, number: n}, nil
	case n < 0:
		return reply{kind: kindNull}, nil
	case mark == '$':
		return c.readText(n)
	case mark == '*':
		for range n {
			if _, err := c.read(); err != nil {
				return reply{}, err
			}
		}
		return reply{kind: kindArray}, nil
	}
	return reply{}, fmt.Errorf("not the Redis protocol: %q", line)
}

// maxText is the longest text that is read: a name, a holder, the SHA1 of a script.
const maxText = 64 << 10

func (c *conn) readText(n int64) (reply, error) {
	if n > maxText {
		return reply{}, fmt.Errorf("a text of %d bytes", n)
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, text); err != nil {
		return reply{}, err
	}
	return reply{kind: kindText, text: string(text[:n])}, nil
}
