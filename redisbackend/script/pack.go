package script

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// packed is an argument that a script takes apart with struct.unpack, little-endian.
type packed []byte

func (p *packed) number(n int64) {
	*p = binary.LittleEndian.AppendUint64(*p, math.Float64bits(float64(n)))
}

func (p *packed) byte(b byte) { *p = append(*p, b) }

func (p *packed) truth(t bool) {
	if t {
		p.byte(1)
	} else {
		p.byte(0)
	}
}

// text goes behind its length.
func (p *packed) text(s string) {
	*p = binary.LittleEndian.AppendUint16(*p, uint16(min(len(s), math.MaxUint16)))
	*p = append(*p, s...)
}

// millis is a duration in whole milliseconds. A part of one counts as a whole, so that nothing ends
// early.
func millis(d time.Duration) int64 {
	if d > math.MaxInt64-time.Millisecond {
		return math.MaxInt64 / int64(time.Millisecond)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// lease is a lease as the scripts read it: 0 is none, -1 for ever.
func lease(d time.Duration) int64 {
	if d == semaphore.Persist {
		return -1
	}
	return millis(d)
}

// stamp is the two arguments that every call begins with which may change something.
func (s Stamp) args() []string {
	var p packed
	p.number(s.NotAfter)
	p.number(int64(s.Serial))
	p.number(s.Floor)
	return []string{string(p), "@" + strconv.FormatUint(s.Server, 36)}
}
