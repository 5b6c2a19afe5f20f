package server

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

// maxHeader is the longest line that announces a length: a sign, 19 digits, and some slack.
const maxHeader = 32

// protocolError is a breach of the protocol, in Redis's words. The connection cannot go on.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// reader cuts a stream of bytes into commands. It goes on where it stopped when more bytes arrive:
// nothing is scanned twice, however small the pieces, and no memory is spent on lengths that are
// merely announced.
type reader struct {
	limits *WireLimits
	pool   *bufferPool
	anon   bool // the client has yet to authenticate: stricter limits

	buf   []byte // bytes received and not used up; nil while there are none to keep
	start int    // where the command being read begins
	at    int    // where reading it goes on
	seen  int    // an inline command has no line end before this

	left  int    // arguments still to come; 0 between commands
	bulk  int    // length of the argument that comes next; -1: its header comes first
	spans []span // the arguments so far, relative to start
	args  [][]byte

	nap [16]byte // receives the first bytes after a rest, when there is no buffer
}

type span struct{ from, to int }

// next returns the next complete command, or nil when more bytes are needed. The arguments are valid
// until the next fill.
func (r *reader) next() ([][]byte, error) {
	for r.left == 0 {
		r.start, r.seen = r.at, max(r.seen, r.at)
		if r.at == len(r.buf) {
			return nil, nil
		}
		if r.buf[r.at] != '*' {
			args, err := r.inline()
			if err != nil || args == nil || len(args) > 0 {
				return args, err
			}
			continue
		}
		n, ok, err := r.header("invalid multibulk length", "too big mbulk count string")
		if err != nil || !ok {
			return nil, err
		}
		if err := r.begin(n); err != nil {
			return nil, err
		}
	}
	for r.left > 0 {
		if ok, err := r.argument(); err != nil || !ok {
			return nil, err
		}
	}
	return r.command(), nil
}

// begin starts a command of n arguments; none is no command, as in Redis.
func (r *reader) begin(n int64) error {
	switch {
	case n <= 0:
		return nil
	case n > int64(r.limits.Arguments):
		return protocolError("invalid multibulk length")
	case r.anon && n > int64(r.limits.AnonArgs):
		return protocolError("unauthenticated multibulk length")
	}
	r.left, r.bulk, r.spans = int(n), -1, r.spans[:0]
	return nil
}

// argument reads the next argument, or as much of it as is there.
func (r *reader) argument() (bool, error) {
	if r.bulk < 0 {
		if r.at == len(r.buf) {
			return false, nil
		}
		if c := r.buf[r.at]; c != '$' {
			return false, protocolError(fmt.Sprintf("expected '$', got '%s'", printable(r.buf[r.at:r.at+1])))
		}
		n, ok, err := r.header("invalid bulk length", "too big bulk count string")
		if err != nil || !ok {
			return false, err
		}
		switch {
		case n < 0 || n > int64(r.limits.Command-(r.at-r.start)):
			return false, protocolError("invalid bulk length")
		case r.anon && n > int64(r.limits.AnonBulk):
			return false, protocolError("unauthenticated bulk length")
		}
		r.bulk = int(n)
	}
	end := r.at + r.bulk
	if len(r.buf) < end+2 {
		return false, nil
	}
	if r.buf[end] != '\r' || r.buf[end+1] != '\n' {
		return false, protocolError("expected CRLF behind a bulk")
	}
	r.spans = append(r.spans, span{r.at - r.start, end - r.start})
	r.at, r.bulk, r.left = end+2, -1, r.left-1
	return true, nil
}

// command returns the arguments that the spans mark.
func (r *reader) command() [][]byte {
	r.args = r.args[:0]
	for _, s := range r.spans {
		r.args = append(r.args, r.buf[r.start+s.from:r.start+s.to])
	}
	return r.args
}

// header reads a line that consists of a type byte and a number.
func (r *reader) header(invalid, long protocolError) (int64, bool, error) {
	line := r.buf[r.at:]
	end := bytes.IndexByte(line[:min(len(line), maxHeader)], '\r')
	switch {
	case end < 0 && len(line) >= maxHeader:
		return 0, false, long
	case end < 0 || end+1 == len(line):
		return 0, false, nil
	case line[end+1] != '\n':
		return 0, false, invalid
	}
	n, ok := integer(line[1:end])
	if !ok {
		return 0, false, invalid
	}
	r.at += end + 2
	return n, true, nil
}

// integer reads a number that may have a minus.
func integer(v []byte) (int64, bool) {
	if len(v) > 0 && v[0] == '-' {
		n, ok := digits(v[1:])
		return -int64(n), ok && n <= -math.MinInt64
	}
	n, ok := digits(v)
	return int64(n), ok && n <= math.MaxInt64
}

// inline reads a command that is a line of words. It returns nil where the line is not complete, an
// empty command for an empty line.
func (r *reader) inline() ([][]byte, error) {
	end := bytes.IndexByte(r.buf[r.seen:], '\n')
	if end < 0 {
		r.seen = len(r.buf)
		if len(r.buf)-r.start > r.inlineLimit() {
			return nil, protocolError("too big inline request")
		}
		return nil, nil
	}
	line := r.buf[r.start : r.seen+end]
	r.at = r.seen + end + 1
	if len(line) > r.inlineLimit() {
		return nil, protocolError("too big inline request")
	}
	args, ok := splitWords(bytes.TrimSuffix(line, []byte{'\r'}))
	switch {
	case !ok:
		return nil, protocolError("unbalanced quotes in request")
	case len(args) > r.limits.Arguments:
		return nil, protocolError("invalid multibulk length")
	case len(args) > 0 && isHTTP(args[0]):
		return nil, protocolError("this is not an HTTP server")
	}
	return args, nil
}

func (r *reader) inlineLimit() int {
	if r.anon {
		return min(r.limits.Inline, r.limits.AnonBulk)
	}
	return r.limits.Inline
}

// isHTTP tells the words by which a browser that was lured into sending us a request gives itself
// away: executing its body would let any web page send us commands.
func isHTTP(word []byte) bool {
	return bytes.EqualFold(word, []byte("POST")) || bytes.EqualFold(word, []byte("Host:"))
}

// fill reads once from src, behind what is there. It needs no buffer while src is silent and
// everything received has been used up.
func (r *reader) fill(src io.Reader) (int, error) {
	if r.buf == nil {
		n, err := src.Read(r.nap[:])
		if n > 0 {
			r.buf = append(r.pool.get(), r.nap[:n]...)
		}
		return n, err
	}
	r.compact()
	if len(r.buf) == cap(r.buf) {
		r.buf = append(make([]byte, 0, 2*cap(r.buf)), r.buf...)
	}
	n, err := src.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	return n, err
}

// compact moves the command being read to the front of the buffer. It moves each byte once at most:
// afterwards the command begins at 0.
func (r *reader) compact() {
	if r.start == 0 {
		return
	}
	n := copy(r.buf, r.buf[r.start:])
	r.buf = r.buf[:n]
	r.at -= r.start
	r.seen = max(0, r.seen-r.start)
	r.start = 0
}

// idle reports that every byte received has been used up.
func (r *reader) idle() bool { return r.left == 0 && r.at == len(r.buf) }

// rest gives the memory back that a silent client does not need.
func (r *reader) rest() {
	if !r.idle() {
		return
	}
	r.pool.put(r.buf)
	r.buf, r.start, r.at, r.seen = nil, 0, 0, 0
	r.spans, r.args = nil, nil
}

// shrink drops a buffer that one large command has left behind.
func (r *reader) shrink() {
	if cap(r.buf) > bufferSize && r.idle() {
		r.rest()
	}
}

// ahead returns how many bytes have been received and not used up.
func (r *reader) ahead() int { return len(r.buf) - r.start }
