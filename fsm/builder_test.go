package fsm

import (
	"encoding/binary"
	"unsafe"

	"github.com/semserver/semserver/semaphore"
)

// Section begins a section, to which Add appends requests one by one.
func (b *Builder) Section(incarnation, first uint64, limits semaphore.Limits) {
	b.Attach(AppendSection(nil, Part{Incarnation: incarnation, First: first}, limits, 0))
}

// Add appends count encoded requests to the last section.
func (b *Builder) Add(requests []byte, count int) {
	r := reader{rest: unsafe.String(&b.data[batchHeader], len(b.data)-batchHeader)}
	last := r.section()
	for len(r.rest) > 0 {
		last = r.section()
	}
	counts := b.data[len(b.data)-len(last.requests.rest)-sectionCounts:]
	length, number := binary.LittleEndian.Uint32(counts), binary.LittleEndian.Uint32(counts[4:])
	binary.LittleEndian.PutUint32(counts, length+uint32(len(requests)))
	binary.LittleEndian.PutUint32(counts[4:], number+uint32(count))
	b.Attach(requests)
}
