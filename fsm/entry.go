package fsm

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"
)

// An entry of the log. Numbers of fixed width are little-endian; var is a varint as in
// encoding/binary, svar its zigzag form; text is a var length and that many bytes.
//
//	version u8 | kind u8 | term u64 | body | CRC-32C u32 of all that precedes
//
//	Open   body: incarnation u64
//	batch  body: stamp i64 | wall i64 | length of sections u32 | sections | losses
//
//	section: incarnation u64 | first u64 | limits: 5 svar | length u32 | count u32 | requests
//	loss:    incarnation u64 | grace svar (ns)
//
// The losses stand last only because a batch is written from front to back; they come first.
const (
	entryVersion = 1

	entryOpen  = 1
	entryBatch = 2

	termOffset     = 2
	stampOffset    = 10
	wallOffset     = 18
	sectionsOffset = 26
	batchHeader    = 30
	sectionCounts  = 8 // length and count, the last fields of a section's header
	checksumSize   = 4
)

// Open is the first entry of a leadership. Every later entry of that leadership carries its term.
type Open struct {
	Term        uint64 // the raft term under which this entry is proposed
	Incarnation uint64 // of the leading node
}

// EncodeOpen returns the entry.
func EncodeOpen(o Open) []byte {
	data := make([]byte, 0, termOffset+16+checksumSize)
	data = append(data, entryVersion, entryOpen)
	data = binary.LittleEndian.AppendUint64(data, o.Term)
	data = binary.LittleEndian.AppendUint64(data, o.Incarnation)
	return appendChecksum(data)
}

// Builder builds a batch entry. It is used by one goroutine.
type Builder struct {
	data   []byte
	losses []byte
}

// NewBuilder begins a batch under the term of the Open of this leadership.
func NewBuilder(term uint64) *Builder {
	data := make([]byte, batchHeader, batchHeader+checksumSize)
	data[0], data[1] = entryVersion, entryBatch
	binary.LittleEndian.PutUint64(data[termOffset:], term)
	return &Builder{data: data}
}

// Grow makes room for sections of that many bytes.
func (b *Builder) Grow(size int) { b.data = slices.Grow(b.data, size+checksumSize) }

// Lost says that a node's incarnation is gone: its waiters keep their place for the grace. It takes
// effect before anything else in the entry.
func (b *Builder) Lost(incarnation uint64, grace time.Duration) {
	b.losses = binary.LittleEndian.AppendUint64(b.losses, incarnation)
	b.losses = binary.AppendVarint(b.losses, int64(grace))
}

// Attach appends a whole section: what AppendSection begins and the requests behind it. One that another
// node has made is attached only when CheckSection has found it sound.
func (b *Builder) Attach(section []byte) { b.data = append(b.data, section...) }

// Seal sets the stamp of the leader's clock and the wall clock (microseconds since 1970) and returns
// the entry. A batch without a section only moves the clock. The builder is not used again.
func (b *Builder) Seal(stamp Time, wall int64) []byte {
	binary.LittleEndian.PutUint64(b.data[stampOffset:], uint64(stamp))
	binary.LittleEndian.PutUint64(b.data[wallOffset:], uint64(wall))
	binary.LittleEndian.PutUint32(b.data[sectionsOffset:], uint32(len(b.data)-batchHeader))
	return appendChecksum(append(b.data, b.losses...))
}

func appendChecksum(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli()))
}

// castagnoli returns the table of CRC-32C; crc32 makes it once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
