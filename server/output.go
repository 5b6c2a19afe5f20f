package server

import (
	"strconv"

	"github.com/semserver/semserver/semaphore"
	"github.com/tidwall/redcon"
)

// output collects the replies of one connection until they are written. It alone knows how replies
// look in the two versions of the protocol, and where in the bytes each grant begins: a grant of
// which no byte was written is still ours to give back.
type output struct {
	pool   *bufferPool
	proto  int // 2 or 3
	buf    []byte
	grants []unsaid
}

// unsaid is a grant that is encoded in the buffer and not yet written.
type unsaid struct {
	from, to int
	null     string // what the client reads in its place when it cannot be told
	key      string
	grant    *semaphore.Grant
}

func (o *output) len() int { return len(o.buf) }

// room returns the buffer to append to.
func (o *output) room() []byte {
	if o.buf == nil {
		o.buf = o.pool.get()
	}
	return o.buf
}

func (o *output) ok()             { o.buf = redcon.AppendOK(o.room()) }
func (o *output) status(s string) { o.buf = redcon.AppendString(o.room(), s) }
func (o *output) number(n int64)  { o.buf = redcon.AppendInt(o.room(), n) }
func (o *output) bulk(s string)   { o.buf = redcon.AppendBulkString(o.room(), s) }
func (o *output) bytes(b []byte)  { o.buf = redcon.AppendBulk(o.room(), b) }
func (o *output) array(n int)     { o.buf = redcon.AppendArray(o.room(), n) }

// digits writes a number as a string, as cursors are: they exceed what some clients read as integers.
func (o *output) digits(n uint64) { o.buf = redcon.AppendBulkUint(o.room(), n) }

// fail writes an error. AppendError keeps line ends out of it.
func (o *output) fail(e *semaphore.Error) { o.buf = redcon.AppendError(o.room(), e.Error()) }

// null writes a missing value.
func (o *output) null() {
	if o.proto == 3 {
		o.buf = append(o.room(), "_\r\n"...)
		return
	}
	o.buf = redcon.AppendNull(o.room())
}

// noGrant is the null that answers an Acquire: an array, where the protocol tells them apart, since
// a grant is one.
func (o *output) noGrant() string {
	if o.proto == 3 {
		return "_\r\n"
	}
	return "*-1\r\n"
}

// mapping begins a map of n pairs, flattened in RESP2.
func (o *output) mapping(n int) {
	if o.proto == 3 {
		o.buf = appendHeader(o.room(), '%', n)
		return
	}
	o.array(2 * n)
}

// set begins a set of n members, an array in RESP2.
func (o *output) set(n int) {
	if o.proto == 3 {
		o.buf = appendHeader(o.room(), '~', n)
		return
	}
	o.array(n)
}

// push begins a message of n parts that answers no command, an array in RESP2.
func (o *output) push(n int) {
	if o.proto == 3 {
		o.buf = appendHeader(o.room(), '>', n)
		return
	}
	o.array(n)
}

// verbatim writes a text for people.
func (o *output) verbatim(s string) {
	if o.proto == 3 {
		b := appendHeader(o.room(), '=', len(s)+4)
		b = append(b, "txt:"...)
		b = append(b, s...)
		o.buf = append(b, "\r\n"...)
		return
	}
	o.bulk(s)
}

func appendHeader(b []byte, kind byte, n int) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '\r', '\n')
}

// withdraw replaces every grant that is not yet written by null and calls back for each.
func (o *output) withdraw(back func(key string, g *semaphore.Grant)) {
	kept := make([]byte, 0, len(o.buf))
	at := 0
	for _, u := range o.grants {
		kept = append(kept, o.buf[at:u.from]...)
		kept = append(kept, u.null...)
		at = u.to
		back(u.key, u.grant)
	}
	o.buf = append(kept, o.buf[at:]...)
	o.forget()
}

// unwritten calls back for every grant of which no byte is among the first n.
func (o *output) unwritten(n int, back func(key string, g *semaphore.Grant)) {
	for _, u := range o.grants {
		if u.from >= n {
			back(u.key, u.grant)
		}
	}
	o.forget()
}

// forget drops what is known about grants: they have been told, or given back.
func (o *output) forget() {
	clear(o.grants)
	o.grants = o.grants[:0]
}

// reset empties the output and gives its buffer back.
func (o *output) reset() {
	o.forget()
	o.pool.put(o.buf)
	o.buf = nil
}
