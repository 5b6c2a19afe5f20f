package peer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// maxQuestion bounds a question and its answer, in bytes.
const maxQuestion = 64 << 10

// Ask puts a question to the node at an address and decodes its answer: both are JSON. It returns who
// answered. An error that the other side gives as its answer is a *Refused.
func (n *Network) Ask(ctx context.Context, address string, question, answer any) (Greeting, error) {
	c, g, err := n.Dial(ctx, address, Ask)
	if err != nil {
		return Greeting{}, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := writeMessage(c, message{Body: encode(question)}); err != nil {
		return g, fmt.Errorf("ask %s: %w", address, err)
	}
	m, err := readMessage(c)
	if err != nil {
		return g, fmt.Errorf("ask %s: %w", address, err)
	}
	if m.Error != "" {
		return g, &Refused{m.Error}
	}
	return g, json.Unmarshal(m.Body, answer)
}

// Answer reads the question of a connection whose purpose is Ask, answers it, and closes it.
func Answer(c net.Conn, patience time.Duration, answer func(question json.RawMessage) (any, error)) {
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(patience))
	m, err := readMessage(c)
	if err != nil {
		return
	}
	reply, err := answer(m.Body)
	m = message{Body: encode(reply)}
	if err != nil {
		m = message{Error: err.Error()}
	}
	c.SetWriteDeadline(time.Now().Add(patience))
	_ = writeMessage(c, m) // who does not read it asks again
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
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

func readMessage(r io.Reader) (message, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return message{}, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxQuestion {
		return message{}, fmt.Errorf("message of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return message{}, err
	}
	var m message
	err := json.Unmarshal(text, &m)
	return m, err
}
