package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/semserver/semserver/fsm"
)

// What a node and the leader say to each other on a stream: frames of a length (u32, of what follows), a
// kind (u8) and a body. Numbers are little-endian.
//
//	hello    incarnation u64                          the node is who it is
//	welcome  term u64                                 the leader leads in that term
//	section  as in an entry                           requests of the node's clients
//	answer   first u64 | count u32 | replies          what became of a section
//	event    as AppendEvent                           how a wait ended
//	goodbye                                           the node stops: its waiters are to keep their places
//	ping                                              it is still there
//	refused  first u64                                a section that was taken over will never be proposed
type frameKind byte

const (
	frameHello   frameKind = 1
	frameWelcome frameKind = 2
	frameSection frameKind = 3
	frameAnswer  frameKind = 4
	frameEvent   frameKind = 5
	frameGoodbye frameKind = 6
	framePing    frameKind = 7
	frameRefused frameKind = 8
)

const (
	frameHeader = 5
	// maxFrame bounds what is believed of a frame's length. Memory is spent as the bytes arrive.
	maxFrame = 64 << 20
	// readStep is how much of a frame is read at once.
	readStep = 64 << 10
)

// beginFrame appends the header of a frame; endFrame, given where it began, fills in the length.
func beginFrame(dst []byte, kind frameKind) []byte { return append(dst, 0, 0, 0, 0, byte(kind)) }

func endFrame(dst []byte, from int) []byte {
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from-4))
	return dst
}

func appendFrame(dst []byte, kind frameKind, body []byte) []byte {
	from := len(dst)
	return endFrame(append(beginFrame(dst, kind), body...), from)
}

// appendNumber appends a frame whose body is one number.
func appendNumber(dst []byte, kind frameKind, n uint64) []byte {
	return appendFrame(dst, kind, binary.LittleEndian.AppendUint64(nil, n))
}

func appendAnswer(dst []byte, s fsm.Section) []byte {
	from := len(dst)
	dst = beginFrame(dst, frameAnswer)
	dst = binary.LittleEndian.AppendUint64(dst, s.First)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s.Replies)))
	for _, r := range s.Replies {
		dst = fsm.AppendReply(dst, r)
	}
	return endFrame(dst, from)
}

func appendEvent(dst []byte, e fsm.Event) []byte {
	from := len(dst)
	return endFrame(fsm.AppendEvent(beginFrame(dst, frameEvent), e), from)
}

// readFrame reads one frame, and says after each part of it that the other side is alive. Its body is
// valid until the next call with the same buffer.
func readFrame(r *bufio.Reader, buffer *[]byte, alive func()) (frameKind, []byte, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length < 1 || length > maxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes", length)
	}
	body := (*buffer)[:0]
	for left := int(length) - 1; left > 0; {
		n := min(left, readStep)
		at := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			return 0, nil, err
		}
		left -= n
		alive()
	}
	*buffer = body
	return frameKind(head[4]), body, nil
}

// writeSteadily writes all, however long that takes while the other side goes on reading.
func writeSteadily(c net.Conn, out []byte) error {
	for len(out) > 0 {
		n := min(len(out), readStep)
		c.SetWriteDeadline(time.Now().Add(writePatience))
		if _, err := c.Write(out[:n]); err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

var errMalformed = errors.New("malformed frame")

func readNumber(body []byte) (uint64, error) {
	if len(body) != 8 {
		return 0, errMalformed
	}
	return binary.LittleEndian.Uint64(body), nil
}

func readAnswer(body []byte, incarnation uint64) (fsm.Section, error) {
	if len(body) < 12 {
		return fsm.Section{}, errMalformed
	}
	first, count := binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint32(body[8:])
	replies, err := fsm.DecodeReplies(body[12:], int(count))
	return fsm.Section{Incarnation: incarnation, First: first, Replies: replies}, err
}
