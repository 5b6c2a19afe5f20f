package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/tidwall/btree"

	"github.com/semserver/semserver/semaphore"
)

// A snapshot begins with snapshotMagic and its version and ends with a CRC-32C of all before it.
// Between them stand the clock and the totals, then the semaphores in the order of creation: their
// record, their quarantine, their grants by token, their line by place. What can be computed from
// that is left out. The bytes are a function of the state alone, whatever way it came about.
const (
	snapshotMagic   = "semserver state\n"
	snapshotVersion = 1
	flushSize       = 64 << 10
)

// Snapshot is the state as it was at one moment. It may be written while the state goes on.
type Snapshot struct {
	now        Time
	last       int64
	ids, works uint64
	stats      Stats
	records    *btree.Map[uint64, *record]
}

// Snapshot returns the state as it is now. It takes the same short time however large the state is.
func (s *State) Snapshot() *Snapshot {
	s.epoch++
	return &Snapshot{
		now: s.now, last: s.last, ids: s.ids, works: s.works,
		stats: s.stats, records: s.records.Copy(),
	}
}

var errReleased = errors.New("fsm: snapshot: released")

// WriteTo writes the snapshot. It may run beside State.Apply, and may be called again.
func (sn *Snapshot) WriteTo(w io.Writer) (int64, error) {
	if sn.records == nil {
		return 0, errReleased
	}
	e := &encoder{w: w}
	e.buf = append(append(e.buf, snapshotMagic...), snapshotVersion)
	e.svar(int64(sn.now), sn.last)
	e.uvar(sn.ids, sn.works)
	for _, total := range sn.stats.totals() {
		e.svar(*total)
	}
	e.uvar(uint64(sn.records.Len()))
	sn.records.Scan(func(_ uint64, r *record) bool {
		e.record(r)
		return e.err == nil
	})
	e.flush()
	e.buf = binary.LittleEndian.AppendUint32(e.buf, e.sum)
	e.flush()
	if e.err != nil {
		return e.n, fmt.Errorf("fsm: snapshot: %w", e.err)
	}
	return e.n, nil
}

// Release lets go of what the snapshot holds. It does not run beside WriteTo.
func (sn *Snapshot) Release() { sn.records = nil }

// totals are the figures that count since the state began; the others are computed.
func (t *Stats) totals() [9]*int64 {
	return [...]*int64{
		&t.Granted, &t.GivenBack, &t.Released, &t.Renewed, &t.Expired,
		&t.Refused, &t.TimedOut, &t.Reconciled, &t.Removed,
	}
}

// numbers are the figures of a record, none of them negative, in the order of their encoding.
func (r *record) numbers() [17]*int64 {
	t, c := &r.settings, &r.counters
	return [...]*int64{
		&r.capacity, &r.last, &t.lease, &t.maxLease, &t.maxHold, &t.quarantine, &t.idle,
		&c.grantsImmediate, &c.grantsWaited, &c.refused, &c.waitTimeouts, &c.waitTotal,
		&c.releases, &c.renewals, &c.expirations, &c.reconciled, &c.heldTotal,
	}
}

// encoder writes fields through a buffer, and sums them up. After an error it writes nothing.
type encoder struct {
	w   io.Writer
	buf []byte
	sum uint32
	n   int64
	err error
}

func (e *encoder) flush() {
	if e.err == nil {
		var n int
		n, e.err = e.w.Write(e.buf)
		e.n += int64(n)
	}
	e.sum = crc32.Update(e.sum, castagnoli(), e.buf)
	e.buf = e.buf[:0]
}

func (e *encoder) uvar(numbers ...uint64) {
	for _, n := range numbers {
		e.buf = binary.AppendUvarint(e.buf, n)
	}
}

func (e *encoder) svar(numbers ...int64) {
	for _, n := range numbers {
		e.buf = binary.AppendVarint(e.buf, n)
	}
}

func (e *encoder) ranges(all []semaphore.Range) {
	e.uvar(uint64(len(all)))
	for _, r := range all {
		e.uvar(uint64(r.First), uint64(r.Last-r.First))
	}
}

// room flushes a full buffer; it is called once for each thing that is written.
func (e *encoder) room() {
	if len(e.buf) >= flushSize {
		e.flush()
	}
}

func (e *encoder) record(r *record) {
	e.room()
	e.uvar(r.id)
	e.buf = appendText(e.buf, r.name)
	for _, n := range r.numbers() {
		e.svar(*n)
	}
	e.svar(int64(r.unused))
	e.uvar(r.joins, r.work, r.sweep)
	e.buf = appendTruth(e.buf, r.born)
	e.quarantine(r)
	e.uvar(uint64(r.grants.Len()))
	r.grants.Scan(func(_ int64, g *grant) bool {
		e.grant(g)
		return e.err == nil
	})
	if r.line == nil {
		e.uvar(0)
		return
	}
	e.uvar(uint64(r.line.Len()))
	r.line.Scan(func(_ uint64, w *waiter) bool {
		e.waiter(w)
		return e.err == nil
	})
}

func (e *encoder) quarantine(r *record) {
	if r.quarantine == nil {
		e.uvar(0)
		return
	}
	e.uvar(uint64(r.quarantine.Len()))
	r.quarantine.Scan(func(p parole) bool {
		e.room()
		e.svar(int64(p.until), p.token)
		e.ranges(p.slots)
		return e.err == nil
	})
}

func (e *encoder) grant(g *grant) {
	e.room()
	e.uvar(uint64(g.idSize))
	e.buf = appendText(e.buf, g.text)
	e.svar(g.token, int64(g.granted), int64(g.end), g.length, int64(g.undo))
	e.buf = appendTicket(e.buf, g.ticket)
	e.buf = appendTruth(e.buf, g.waited)
	e.ranges(g.slots())
}

func (e *encoder) waiter(w *waiter) {
	e.room()
	e.uvar(uint64(w.idSize))
	e.buf = appendText(e.buf, w.text)
	e.uvar(w.seq)
	e.svar(w.permits, w.lease, w.fallback, int64(w.joined), int64(w.end), int64(w.grace))
	e.buf = appendTicket(e.buf, w.ticket)
	e.buf = appendTruth(e.buf, w.made)
}
