package fsm

import (
	"github.com/tidwall/btree"

	"github.com/semserver/semserver/semaphore"
)

// slots are the places 0, 1, 2, … without end, some of them taken. Only the gaps below the highest
// place taken are stored, so that a capacity of 2^53-1 costs nothing.
type slots struct {
	top  int64                    // all places from here on are free, and top-1 is taken
	gaps *btree.Map[int64, int64] // free below top: first -> last, never adjacent; nil while there are none
}

// take appends the n lowest free places to dst, in growing order.
func (s *slots) take(n int64, dst []semaphore.Range) []semaphore.Range {
	for n > 0 && s.gaps != nil {
		first, last, _ := s.gaps.Min()
		if size := last - first + 1; size > n {
			taken := semaphore.Range{First: first, Last: first + n - 1}
			s.gaps.Delete(first)
			s.gaps.Set(first+n, last)
			return append(dst, taken)
		}
		dst = append(dst, semaphore.Range{First: first, Last: last})
		n -= last - first + 1
		s.drop(first)
	}
	if n == 0 {
		return dst
	}
	taken := semaphore.Range{First: s.top, Last: s.top + n - 1}
	s.top += n
	return append(dst, taken) // apart from the last gap, for top-1 was taken
}

// put frees places that take gave out.
func (s *slots) put(ranges []semaphore.Range) {
	for _, r := range ranges {
		s.free(r.First, r.Last)
	}
}

func (s *slots) free(first, last int64) {
	if before, end, ok := s.below(first); ok && end+1 == first {
		first = before
		s.drop(before)
	}
	if last+1 == s.top {
		s.top = first
		return
	}
	if s.gaps == nil {
		s.gaps = new(btree.Map[int64, int64])
	}
	if end, ok := s.gaps.Get(last + 1); ok {
		s.gaps.Delete(last + 1)
		last = end
	}
	s.gaps.Set(first, last)
}

// below returns the gap that begins before first, the nearest one.
func (s *slots) below(first int64) (begin, end int64, ok bool) {
	if s.gaps == nil {
		return 0, 0, false
	}
	s.gaps.Descend(first, func(b, e int64) bool {
		begin, end, ok = b, e, true
		return false
	})
	return begin, end, ok
}

func (s *slots) drop(first int64) {
	s.gaps.Delete(first)
	if s.gaps.Len() == 0 {
		s.gaps = nil
	}
}
