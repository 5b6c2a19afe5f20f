package fsm

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/semserver/semserver/semaphore"
)

// Part says what a section of an entry is about. A section travels from the node through which its
// requests came to the leader, who makes it a part of an entry.
type Part struct {
	Incarnation uint64 // of the node
	First       uint64 // ticket of the first request; the i-th has First+i
	Requests    int
}

// AppendSection appends the header of a section whose requests, encoded by AppendRequest, take length
// bytes; the caller appends them.
func AppendSection(dst []byte, p Part, limits semaphore.Limits, length int) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, p.Incarnation)
	dst = binary.LittleEndian.AppendUint64(dst, p.First)
	dst = binary.AppendVarint(dst, int64(limits.DefaultLease))
	dst = binary.AppendVarint(dst, int64(limits.DefaultIdle))
	dst = binary.AppendVarint(dst, int64(limits.MaxWaiters))
	dst = binary.AppendVarint(dst, int64(limits.MaxWaitersAll))
	dst = binary.AppendVarint(dst, int64(limits.MaxSemaphores))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(length))
	return binary.LittleEndian.AppendUint32(dst, uint32(p.Requests))
}

// CheckSection decodes a section without executing it. A leader checks what others send before it
// stands in the log, where nobody could go past it.
func CheckSection(data []byte) (Part, error) {
	if len(data) == 0 {
		return Part{}, fmt.Errorf("fsm: section: %w", errTruncated)
	}
	r := &reader{rest: unsafe.String(&data[0], len(data))}
	s := r.section()
	if err := r.end(); err != nil {
		return Part{}, fmt.Errorf("fsm: section: %w", err)
	}
	for range s.count {
		s.requests.skip()
	}
	if err := s.requests.end(); err != nil {
		return Part{}, fmt.Errorf("fsm: request: %w", err)
	}
	return Part{Incarnation: s.incarnation, First: s.first, Requests: s.count}, nil
}

// skip reads over a request. The frequent kinds are not boxed.
func (r *reader) skip() {
	switch kind := r.byte(); kind {
	case kindAcquire:
		r.acquire()
	case kindRelease:
		r.release()
	case kindRenew:
		r.renew()
	default:
		r.request(kind)
	}
}
