package peer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Purpose is what a connection between two nodes is for.
type Purpose byte

// The purposes.
const (
	Raft    Purpose = 'r' // what Raft says to its peers
	Forward Purpose = 'f' // requests for the leader, and their answers
	Ask     Purpose = 'a' // one question and one answer
)

// Greeting is how a node introduces itself.
type Greeting struct {
	Cluster string `json:"cluster"` // the cluster that it belongs to; empty: none yet
	Node    string `json:"node"`    // its server id
	Address string `json:"address"` // where it is reached
}

// A connection begins with a hello: magic, version, purpose, and the length and the JSON of a
// Greeting. It is answered by a verdict, and the Greeting of the other side or the text of a refusal.
const (
	magic       = "semp"
	version     = 1
	welcome     = 'y'
	refusal     = 'n'
	maxGreeting = 4 << 10
	// maxReason bounds a refusal, in bytes: however it is escaped, it fits where a greeting does.
	maxReason = maxGreeting / 8
)

// With these bytes TLS would begin.
const (
	tlsHandshake = 0x16
	tlsAlert     = 0x15
)

func writeHello(w io.Writer, p Purpose, g Greeting) error {
	return writeText(w, append([]byte(magic), version, byte(p)), g)
}

func readHello(r io.Reader) (Purpose, Greeting, error) {
	var head [len(magic) + 2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, Greeting{}, fmt.Errorf("read hello: %w", err)
	}
	switch {
	case string(head[:len(magic)]) == magic:
	case head[0] == tlsHandshake:
		return 0, Greeting{}, errTLS
	default:
		return 0, Greeting{}, errProtocol
	}
	if v := head[len(magic)]; v != version {
		return 0, Greeting{}, fmt.Errorf("peer speaks version %d of the protocol, this node version %d", v, version)
	}
	g, err := readGreeting(r)
	return Purpose(head[len(magic)+1]), g, err
}

func writeText(w io.Writer, head []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode greeting: %w", err)
	}
	if len(text) > maxGreeting {
		return fmt.Errorf("greeting of %d bytes: at most %d", len(text), maxGreeting)
	}
	head = binary.BigEndian.AppendUint16(head, uint16(len(text)))
	_, err = w.Write(append(head, text...))
	return err
}

func readText(r io.Reader, v any) error {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return fmt.Errorf("read greeting: %w", err)
	}
	n := binary.BigEndian.Uint16(size[:])
	if n > maxGreeting {
		return fmt.Errorf("greeting of %d bytes: at most %d", n, maxGreeting)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("read greeting: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("decode greeting: %w", err)
	}
	return nil
}

func readGreeting(r io.Reader) (Greeting, error) {
	var g Greeting
	err := readText(r, &g)
	return g, err
}

// Refused is why the other side does not want a connection.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return "refused by peer: " + r.Reason }

func writeWelcome(w io.Writer, g Greeting) error { return writeText(w, []byte{welcome}, g) }

func writeRefusal(w io.Writer, reason string) error {
	return writeText(w, []byte{refusal}, Refused{shorten(reason, maxReason)})
}

// shorten cuts a text to a number of bytes, between characters.
func shorten(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "")
}

func readAnswer(r io.Reader) (Greeting, error) {
	var verdict [1]byte
	if _, err := io.ReadFull(r, verdict[:]); err != nil {
		return Greeting{}, fmt.Errorf("read answer to hello: %w", err)
	}
	switch verdict[0] {
	case welcome:
		return readGreeting(r)
	case refusal:
	case tlsAlert, tlsHandshake:
		return Greeting{}, errTLS
	default:
		return Greeting{}, errProtocol
	}
	why := &Refused{}
	if err := readText(r, why); err != nil {
		return Greeting{}, err
	}
	return Greeting{}, why
}
