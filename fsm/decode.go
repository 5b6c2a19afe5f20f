package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
	"unsafe"

	"github.com/semserver/semserver/semaphore"
)

// maxText is the longest text in an entry or a snapshot. Names are shorter by the protocol; the bound
// is what a damaged length can make us believe.
const maxText = math.MaxUint16

var errTruncated = errors.New("truncated")

// reader reads the fields of an entry. Texts are parts of the entry, whose bytes the caller of Apply
// may use again afterwards: whoever stores one clones it. After a failure every read yields zero.
type reader struct {
	rest string
	err  error
}

func (r *reader) fail(reason string) {
	if r.err == nil {
		r.err = errors.New(reason)
	}
	r.rest = ""
}

// end returns the first failure; that bytes are left over is one.
func (r *reader) end() error {
	if len(r.rest) > 0 {
		r.fail("trailing bytes")
	}
	return r.err
}

func (r *reader) take(n int) string {
	if n > len(r.rest) {
		r.fail("truncated")
		return ""
	}
	head := r.rest[:n]
	r.rest = r.rest[n:]
	return head
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail("truncated")
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) truth() bool {
	b := r.byte()
	if b > 1 {
		r.fail("truth is neither 0 nor 1")
	}
	return b == 1
}

func (r *reader) u32() uint32 {
	var n uint32
	for i, s := 0, r.take(4); i < len(s); i++ {
		n |= uint32(s[i]) << (8 * i)
	}
	return n
}

func (r *reader) u64() uint64 {
	var n uint64
	for i, s := 0, r.take(8); i < len(s); i++ {
		n |= uint64(s[i]) << (8 * i)
	}
	return n
}

// uvar reads a varint in its shortest form: one state has one encoding.
func (r *reader) uvar() uint64 {
	var n uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		b := r.rest[i]
		if i == binary.MaxVarintLen64-1 && b > 1 || i > 0 && b == 0 {
			break
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.rest = r.rest[i+1:]
			return n
		}
	}
	r.fail("malformed number")
	return 0
}

func (r *reader) svar() int64 {
	n := r.uvar()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) count() int { return int(r.svar()) }

func (r *reader) text() string {
	n := r.uvar()
	if n > maxText {
		r.fail("text too long")
		return ""
	}
	return r.take(int(n))
}

func (r *reader) ticket() semaphore.Ticket {
	return semaphore.Ticket{Incarnation: r.uvar(), Number: r.uvar()}
}

func (r *reader) limits() semaphore.Limits {
	return semaphore.Limits{
		DefaultLease:  time.Duration(r.svar()),
		DefaultIdle:   time.Duration(r.svar()),
		MaxWaiters:    r.count(),
		MaxWaitersAll: r.count(),
		MaxSemaphores: r.count(),
	}
}

// header is what every entry begins with.
type header struct {
	kind byte
	term uint64
}

// openEntry checks version and checksum and returns the header and the body.
func openEntry(data []byte) (header, *reader, error) {
	if len(data) < stampOffset+checksumSize {
		return header{}, nil, errTruncated
	}
	if data[0] != entryVersion {
		return header{}, nil, fmt.Errorf("version %d, want %d", data[0], entryVersion)
	}
	body := data[:len(data)-checksumSize]
	if sum := binary.LittleEndian.Uint32(data[len(body):]); sum != crc32.Checksum(body, castagnoli()) {
		return header{}, nil, errors.New("wrong checksum")
	}
	// The bytes are not copied: nobody changes them while Apply runs, and nothing keeps a part of them.
	r := &reader{rest: unsafe.String(&body[2], len(body)-2)}
	return header{kind: data[1], term: r.u64()}, r, nil
}

// batch is the body of a batch entry, taken apart as far as its sections.
type batch struct {
	stamp    Time
	wall     int64
	sections reader
	losses   reader
}

func (r *reader) batch() (batch, error) {
	b := batch{stamp: Time(r.u64()), wall: int64(r.u64())}
	b.sections.rest = r.take(int(r.u32()))
	b.losses.rest = r.rest
	return b, r.err
}

// section is the header of a section, and its requests.
type section struct {
	incarnation, first uint64
	limits             semaphore.Limits
	count              int
	requests           reader
}

func (r *reader) section() section {
	s := section{incarnation: r.u64(), first: r.u64(), limits: r.limits()}
	length, count := r.u32(), r.u32()
	s.requests.rest = r.take(int(length))
	if uint64(count) > uint64(len(s.requests.rest)) {
		r.fail("more requests than bytes")
	}
	s.count = int(count)
	return s
}

func (r *reader) settings() (s semaphore.Settings) {
	flags := r.byte()
	if flags >= givenIdle<<1 {
		r.fail("unknown setting")
	}
	for _, one := range settingFlags(&s) {
		if flags&one.flag != 0 {
			*one.setting = semaphore.Set(time.Duration(r.svar()))
		}
	}
	return s
}

func (r *reader) acquire() (a semaphore.Acquire) {
	a.Key, a.Holder, a.Label = r.text(), r.text(), r.text()
	flags := r.byte()
	if flags > flagMade|flagCreate|flagFresh {
		r.fail("unknown flag")
	}
	a.Made = flags&flagMade != 0
	a.Create = flags&flagCreate != 0
	a.Fresh = flags&flagFresh != 0
	a.Permits = r.svar()
	a.Lease = time.Duration(r.svar())
	a.Wait = time.Duration(r.svar())
	a.Capacity = r.svar()
	return a
}

func (r *reader) release() semaphore.Release {
	return semaphore.Release{Key: r.text(), Holder: r.text(), Token: r.svar()}
}

func (r *reader) renew() semaphore.Renew {
	return semaphore.Renew{Key: r.text(), Holder: r.text(), Lease: time.Duration(r.svar()), Token: r.svar()}
}

// request reads the fields of one request of any kind.
func (r *reader) request(kind byte) semaphore.Request {
	switch kind {
	case kindAcquire:
		return r.acquire()
	case kindRelease:
		return r.release()
	case kindRenew:
		return r.renew()
	case kindCancel:
		return semaphore.Cancel{Key: r.text(), Holder: r.text()}
	case kindCheck:
		return semaphore.Check{Key: r.text(), Holder: r.text(), Token: r.svar()}
	case kindLeave:
		return Leave{Key: r.text(), Holder: r.text(), Ticket: r.ticket()}
	case kindGiveBack:
		return GiveBack{Key: r.text(), Holder: r.text(), Token: r.svar(), Ticket: r.ticket()}
	case kindRejoin:
		return Rejoin{Acquire: r.acquire(), Old: r.ticket()}
	default:
		return r.care(kind)
	}
}

// care reads the requests of operators.
func (r *reader) care(kind byte) semaphore.Request {
	switch kind {
	case kindCreate:
		return semaphore.Create{Key: r.text(), Capacity: r.svar(), Settings: r.settings(), MinToken: r.svar(), IfAbsent: r.truth()}
	case kindResize:
		return semaphore.Resize{Key: r.text(), Capacity: r.svar(), Settings: r.settings()}
	case kindReconcile:
		return semaphore.Reconcile{Key: r.text(), Adopt: r.truth(), Capacity: r.svar()}
	case kindDelete:
		return semaphore.Delete{Key: r.text(), Force: r.truth()}
	case kindInspect:
		return semaphore.Inspect{Key: r.text()}
	case kindHolders:
		return semaphore.Holders{Key: r.text(), Cursor: r.uvar(), Count: r.count()}
	case kindWaiters:
		return semaphore.Waiters{Key: r.text(), Cursor: r.uvar(), Count: r.count()}
	case kindScan:
		return semaphore.Scan{Cursor: r.uvar(), Count: r.count()}
	}
	r.fail("unknown kind of request")
	return nil
}

// longText reads two texts stored as one.
func (r *reader) longText() string {
	n := r.uvar()
	if n > 2*maxText {
		r.fail("text too long")
		return ""
	}
	return r.take(int(n))
}
