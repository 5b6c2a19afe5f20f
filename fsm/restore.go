package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/semserver/semserver/semaphore"
)

// Restore reads a state that Snapshot.WriteTo wrote. Damaged bytes, and bytes that are missing or left
// over, are errors; nothing is allocated by a length that is only announced.
func Restore(r io.Reader) (*State, error) {
	var text strings.Builder
	if _, err := io.Copy(&text, r); err != nil {
		return nil, fmt.Errorf("fsm: restore: %w", err)
	}
	body, err := openSnapshot(text.String())
	if err != nil {
		return nil, fmt.Errorf("fsm: restore: %w", err)
	}
	s := New()
	if err := s.restore(body); err != nil {
		return nil, fmt.Errorf("fsm: restore: %w", err)
	}
	return s, nil
}

// openSnapshot checks what frames a snapshot and returns the rest.
func openSnapshot(text string) (*reader, error) {
	if len(text) < len(snapshotMagic)+1+checksumSize || text[:len(snapshotMagic)] != snapshotMagic {
		return nil, errTruncated
	}
	if version := text[len(snapshotMagic)]; version != snapshotVersion {
		return nil, fmt.Errorf("version %d, want %d", version, snapshotVersion)
	}
	end := len(text) - checksumSize
	trailer := &reader{rest: text[end:]}
	if trailer.u32() != checksum(text[:end]) {
		return nil, errors.New("wrong checksum")
	}
	return &reader{rest: text[len(snapshotMagic)+1 : end]}, nil
}

// checksum sums up a text without a second copy of it.
func checksum(text string) (sum uint32) {
	buf := make([]byte, min(len(text), flushSize))
	for len(text) > 0 {
		n := copy(buf, text)
		sum = crc32.Update(sum, castagnoli(), buf[:n])
		text = text[n:]
	}
	return sum
}

// moment reads a time, which is never negative.
func (r *reader) moment() Time { return Time(r.natural()) }

// natural reads a number that is stored signed and is never negative.
func (r *reader) natural() int64 {
	n := r.svar()
	if n < 0 {
		r.fail("negative number")
	}
	return n
}

func (s *State) restore(r *reader) error {
	s.now, s.last = r.moment(), r.natural()
	s.at = s.now
	s.ids, s.works = r.uvar(), r.uvar()
	for _, total := range s.stats.totals() {
		*total = r.natural()
	}
	before := uint64(0)
	for n := r.uvar(); n > 0 && r.err == nil; n-- {
		rec := r.record()
		if rec.id <= before || rec.id > s.ids || s.byName[rec.name] != nil {
			r.fail("semaphores out of order")
		}
		before = rec.id
		s.restoreSem(r, rec)
	}
	return r.end()
}

func (r *reader) record() *record {
	rec := &record{id: r.uvar(), name: strings.Clone(r.text())}
	for _, n := range rec.numbers() {
		*n = r.natural()
	}
	rec.unused = r.moment()
	rec.joins, rec.work, rec.sweep = r.uvar(), r.uvar(), r.uvar()
	rec.born = r.truth()
	if rec.capacity > semaphore.MaxCapacity {
		r.fail("capacity out of range")
	}
	if t := rec.settings; t.maxLease > 0 && t.lease > t.maxLease {
		r.fail("LEASE above MAXLEASE")
	}
	return rec
}

// restoreSem reads what belongs to a record, and computes what stands beside it.
func (s *State) restoreSem(r *reader, rec *record) {
	m := &sem{rec: rec, next: never, at: outside}
	s.enter(m)
	taken := s.restoreQuarantine(r, m)
	taken = s.restoreGrants(r, m, taken)
	s.restoreLine(r, m)
	if r.err != nil {
		return
	}
	if !m.slots.occupy(taken) {
		r.fail("slots taken twice")
		return
	}
	if rec.work != 0 {
		if _, twice := s.work.Set(rec.work, m); twice || rec.work > s.works {
			r.fail("unfinished work out of order")
			return
		}
	}
	if rec.sweep != 0 && (m.waiters == nil || rec.work == 0) {
		r.fail("a search of the line without work or line")
		return
	}
	s.schedule(m)
}

func (s *State) restoreQuarantine(r *reader, m *sem) (taken []semaphore.Range) {
	for n := r.uvar(); n > 0 && r.err == nil; n-- {
		p := parole{until: r.moment(), token: r.natural(), slots: r.ranges(nil)}
		if m.rec.quarantine == nil {
			m.rec.quarantine = newQuarantine()
		}
		if last, ok := m.rec.quarantine.Max(); ok && !m.rec.quarantine.Less(last, p) {
			r.fail("quarantine out of order")
		}
		m.rec.quarantine.Set(p)
		m.quarantined += width(p.slots)
		s.stats.Quarantined += width(p.slots)
		taken = append(taken, p.slots...)
	}
	return taken
}

func (s *State) restoreGrants(r *reader, m *sem, taken []semaphore.Range) []semaphore.Range {
	before := int64(0)
	for n := r.uvar(); n > 0 && r.err == nil; n-- {
		g := r.grant()
		if r.err != nil {
			break
		}
		if g.token <= before || g.token > m.rec.last || m.rec.last > s.last || g.granted > s.now {
			r.fail("grants out of order")
			break
		}
		if g.live(s.now) && m.live(g.holder(), s.now) != nil {
			r.fail("two live grants of one holder")
			break
		}
		before = g.token
		s.hold(m, g)
		taken = append(taken, g.slots()...)
	}
	return taken
}

func (r *reader) grant() *grant {
	g := newGrant(r.holderAndLabel())
	g.token, g.granted, g.end = r.natural(), r.moment(), r.moment()
	g.length, g.undo = r.natural(), r.moment()
	g.ticket, g.waited = r.ticket(), r.truth()
	g.occupy(r.ranges(nil))
	return g
}

// holderAndLabel returns parts of the snapshot, to be cloned.
func (r *reader) holderAndLabel() (holder, label string) {
	size, text := r.uvar(), r.longText()
	if size > maxText || int(size) > len(text) {
		r.fail("holder longer than its text")
		return "", ""
	}
	return text[:size], text[size:]
}

// ranges reads slots that ascend and do not touch.
func (r *reader) ranges(dst []semaphore.Range) []semaphore.Range {
	next, n := int64(0), r.uvar()
	if n == 0 {
		r.fail("no slots")
	}
	for ; n > 0 && r.err == nil; n-- {
		first, more := r.uvar(), r.uvar()
		if first > math.MaxInt64/2 || more > semaphore.MaxCapacity || int64(first) < next {
			r.fail("slots out of order")
			return nil
		}
		one := semaphore.Range{First: int64(first), Last: int64(first + more)}
		dst, next = append(dst, one), one.Last+2
	}
	return dst
}

func (s *State) restoreLine(r *reader, m *sem) {
	before := uint64(0)
	for n := r.uvar(); n > 0 && r.err == nil; n-- {
		w := r.waiter()
		if r.err != nil {
			break
		}
		if w.seq <= before || w.seq > m.rec.joins || w.joined > s.now || m.waiter(w.holder()) != nil {
			r.fail("line out of order")
			break
		}
		if m.live(w.holder(), s.now) != nil {
			r.fail("a holder that both waits and holds")
			break
		}
		before = w.seq
		s.stand(m, w)
	}
}

func (r *reader) waiter() *waiter {
	w := &waiter{}
	holder, label := r.holderAndLabel()
	w.text, w.idSize = joined(holder, label), uint16(len(holder))
	w.seq = r.uvar()
	w.permits, w.lease, w.fallback = r.natural(), r.natural(), r.svar()
	w.joined, w.end, w.grace = r.moment(), r.moment(), r.moment()
	w.ticket, w.made = r.ticket(), r.truth()
	if w.permits < 1 || w.permits > semaphore.MaxCapacity {
		r.fail("permits out of range")
	}
	return w
}

// occupy takes the places given, and says whether none was given twice.
func (s *slots) occupy(taken []semaphore.Range) bool {
	slices.SortFunc(taken, func(a, b semaphore.Range) int { return cmp.Compare(a.First, b.First) })
	for _, r := range taken {
		if r.First < s.top {
			return false
		}
		if r.First > s.top {
			if s.gaps == nil {
				s.gaps = new(btree.Map[int64, int64])
			}
			s.gaps.Set(s.top, r.First-1)
		}
		s.top = r.Last + 1
	}
	return true
}
