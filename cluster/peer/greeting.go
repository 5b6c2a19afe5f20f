package peer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
)

func writeHello(w io.Writer, p Purpose, g Greeting) error {
	return writeText(w, append([]byte(magic), version, byte(p)), g)
}

func readHello(r io.Reader) (Purpose, Greeting, error) {
	var head [len(magic) + 2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, Greeting{}, fmt.Errorf("read hello: %w", err)
	}
	if string(head[:len(magic)]) != magic {
		return 0, Greeting{}, errors.New("not a peer: it speaks another protocol")
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
		return fmt.Errorf("greeting of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("read greeting: %w", err)
	}
	return json.Unmarshal(text, v)
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
	return writeText(w, []byte{refusal}, Refused{reason})
}

func readAnswer(r io.Reader) (Greeting, error) {
	var verdict [1]byte
	if _, err := io.ReadFull(r, verdict[:]); err != nil {
		return Greeting{}, fmt.Errorf("read answer to hello: %w", err)
	}
	if verdict[0] == welcome {
		return readGreeting(r)
	}
	why := &Refused{}
	if err := readText(r, why); err != nil {
		return Greeting{}, err
	}
	return Greeting{}, why
}
