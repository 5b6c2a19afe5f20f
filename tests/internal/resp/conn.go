// Package resp is a small client of the Redis protocol, RESP2 and RESP3, for looking at what a
// server sends.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// Timeout is how long a reply may take unless a deadline says otherwise.
const Timeout = 30 * time.Second

// Conn is one connection. One goroutine may write while another reads.
type Conn struct {
	net.Conn
	in *bufio.Reader
}

// Dial connects to a server.
func Dial(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, Timeout)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return &Conn{Conn: c, in: bufio.NewReaderSize(c, 4096)}, nil
}

// Encode appends a command to out. Arguments are written as fmt.Sprint does.
func Encode(out []byte, args ...any) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(args))
	for _, arg := range args {
		text := fmt.Sprint(arg)
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(text), text)
	}
	return out
}

// Send writes one command.
func (c *Conn) Send(args ...any) error {
	_, err := c.Write(Encode(nil, args...))
	return err
}

// Do sends a command and returns its reply. The error is the connection's; a refusal is an [Error] as
// the reply.
func (c *Conn) Do(args ...any) (any, error) {
	if err := c.Send(args...); err != nil {
		return nil, err
	}
	return c.Receive(Timeout)
}

// Receive reads one reply, which must be complete within the timeout.
func (c *Conn) Receive(timeout time.Duration) (any, error) {
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	return read(c.in)
}

// Raw reads n bytes as they came.
func (c *Conn) Raw(n int, timeout time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	buf := make([]byte, n)
	for i := range buf {
		b, err := c.in.ReadByte()
		if err != nil {
			return string(buf[:i]), err
		}
		buf[i] = b
	}
	return string(buf), nil
}

// Silent reports whether no byte arrives for that long.
func (c *Conn) Silent(d time.Duration) bool {
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		return false
	}
	_, err := c.in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// Reset closes the connection with RST in place of FIN.
func (c *Conn) Reset() error {
	if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		return err
	}
	return c.Close()
}

// Port is the port of an address.
func Port(addr string) (int, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
