package redismode

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	errFenced = errors.New("a later holder of this slot has written")
	errNoRow  = errors.New("no row for this slot")
)

// resource is what a semaphore guards: a table with a row for each slot, which keeps the highest token
// that has written in it.
type resource struct {
	mu   sync.Mutex
	rows []int64
}

func newResource(capacity int) *resource { return &resource{rows: make([]int64, capacity)} }

// write takes a write of this grant, if the rows of all its slots have no higher token, and raises them.
func (r *resource) write(g grant) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(g.slots) == 0 {
		return errNoRow
	}
	for _, slot := range g.slots {
		switch {
		case slot < 0 || slot >= int64(len(r.rows)):
			return errNoRow
		case r.rows[slot] > g.token:
			return errFenced
		}
	}
	for _, slot := range g.slots {
		r.rows[slot] = g.token
	}
	return nil
}

func TestAResourceRefusesByAllItsRows(t *testing.T) {
	t.Parallel()
	r := newResource(3)
	for _, c := range []struct {
		token int64
		slots []int64
		want  error
	}{
		{10, []int64{0, 1}, nil},
		{10, []int64{0, 1}, nil},       // it may write again
		{9, []int64{2}, nil},           // older, but a legitimate holder beside it
		{8, []int64{0}, errFenced},     //
		{11, []int64{1}, nil},          //
		{10, []int64{0, 1}, errFenced}, // its second slot has another holder
		{12, []int64{3}, errNoRow},     //
		{12, []int64{-1}, errNoRow},    // a holder by hand
		{12, nil, errNoRow},            //
	} {
		if err := r.write(grant{token: c.token, slots: c.slots}); !errors.Is(err, c.want) {
			t.Errorf("token %d in slots %v: got %v, want %v", c.token, c.slots, err, c.want)
		}
	}
}

// room is what holders share, however they got in: it may never be fuller than the capacity.
type room struct {
	*testing.T
	capacity  int64
	now, most atomic.Int64
}

func (r *room) enter() {
	n := r.now.Add(1)
	if n > r.capacity {
		r.Errorf("held at once: got %d, want at most %d", n, r.capacity)
	}
	for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); {
		most = r.most.Load()
	}
}

func (r *room) leave() { r.now.Add(-1) }
