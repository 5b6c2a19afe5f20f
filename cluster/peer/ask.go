package peer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// maxMessage bounds a question and its answer as they travel, in bytes.
const maxMessage = 64 << 10

var errTooLong = errors.New("message is too long")

// Ask puts a question to the node at an address and decodes its answer: both are JSON. It returns who
// answered. An error that the other side gives as its answer is a *Refused, an Unasked says that it has
// never got the question. The context bounds how long the other side may think.
func (n *Network) Ask(ctx context.Context, address string, question, answer any) (Greeting, error) {
	c, who, err := n.Dial(ctx, address, Ask)
	if err != nil {
		return Greeting{}, Unasked{err}
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	m, err := exchange(c, question)
	switch {
	case err != nil && ctx.Err() != nil:
		return who, fmt.Errorf("ask %s: %w: %w", address, ctx.Err(), err)
	case err != nil:
		return who, fmt.Errorf("ask %s: %w", address, err)
	case m.Error != "":
		return who, &Refused{m.Error}
	}
	if err := json.Unmarshal(m.Body, answer); err != nil {
		return who, fmt.Errorf("ask %s: decode answer: %w", address, err)
	}
	return who, nil
}

// Unasked is why a question was not put to anybody.
type Unasked struct{ Why error }

// Error returns what went wrong on the way.
func (u Unasked) Error() string { return u.Why.Error() }

// Unwrap returns the same as an error.
func (u Unasked) Unwrap() error { return u.Why }

func exchange(c net.Conn, question any) (message, error) {
	if err := writeMessage(c, message{Body: encode(question)}); err != nil {
		return message{}, err
	}
	return readMessage(c)
}

// Answer reads the question of a connection whose purpose is Ask, answers it, and closes it. The context
// of answer ends when the asker has hung up.
func Answer(c net.Conn, patience time.Duration, answer func(ctx context.Context, question json.RawMessage) (any, error)) {
	var watch sync.WaitGroup
	defer watch.Wait()
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(patience))
	m, err := readMessage(c)
	if err != nil {
		return
	}
	c.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watch.Go(func() {
		defer cancel()
		_, _ = c.Read(make([]byte, 1)) // there is nothing more to come
	})
	reply, err := answer(ctx, m.Body)
	m = message{Body: encode(reply)}
	if err != nil {
		m = message{Error: err.Error()}
	}
	c.SetWriteDeadline(time.Now().Add(patience))
	err = writeMessage(c, m)
	if errors.Is(err, errTooLong) {
		err = writeMessage(c, message{Error: shorten(err.Error(), maxReason)})
	}
	_ = err // who does not read it asks again
}

type message struct {
	Error string          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	return text
}

func writeMessage(w io.Writer, m message) error {
	text := encode(m)
	if len(text) > maxMessage {
		return fmt.Errorf("%w: %d bytes, at most %d", errTooLong, len(text), maxMessage)
	}
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

func readMessage(r io.Reader) (message, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return message{}, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return message{}, fmt.Errorf("%w: %d bytes, at most %d", errTooLong, n, maxMessage)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return message{}, err
	}
	var m message
	err := json.Unmarshal(text, &m)
	return m, err
}
