package load

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the latencies that are told apart, in microseconds; three digits are kept.
const (
	leastLatency = 1
	mostLatency  = int64(2 * time.Hour / time.Microsecond)
	digits       = 3
)

// record collects what the clients of one address see.
type record struct {
	addr string

	mu       sync.Mutex
	acquire  *hdrhistogram.Histogram
	release  *hdrhistogram.Histogram
	pairs    int64 // permits got, and where the load releases them given back
	refused  int64
	errors   map[string]int64 // by the first word, or "connection"
	gap      *gap
	counting bool
}

func newRecord(addr string) *record {
	return &record{
		addr:    addr,
		acquire: hdrhistogram.New(leastLatency, mostLatency, digits),
		release: hdrhistogram.New(leastLatency, mostLatency, digits),
		errors:  map[string]int64{},
		gap:     newGap(),
	}
}

// round is what one client did in one go.
type round struct {
	acquire, release []time.Duration
	granted, refused int64
	errors           []string
}

func (r *round) reset() {
	r.acquire, r.release, r.errors = r.acquire[:0], r.release[:0], r.errors[:0]
	r.granted, r.refused = 0, 0
}

// fail notes an error by its first word.
func (r *round) fail(text string) {
	code, _, _ := strings.Cut(text, " ")
	r.errors = append(r.errors, code)
}

// count begins or ends the time that counts.
func (r *record) count(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counting = on
}

// take adds what a client did.
func (r *record) take(done *round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.counting {
		return
	}
	for _, d := range done.acquire {
		_ = r.acquire.RecordValue(clamp(d))
	}
	for _, d := range done.release {
		_ = r.release.RecordValue(clamp(d))
	}
	for _, code := range done.errors {
		r.errors[code]++
	}
	r.pairs += done.granted
	r.refused += done.refused
}

func clamp(d time.Duration) int64 { return max(leastLatency, min(d.Microseconds(), mostLatency)) }

// gap is the longest time without a grant.
type gap struct {
	start         time.Time
	last, longest atomic.Int64 // in nanoseconds since the start
}

func newGap() *gap { return &gap{start: time.Now()} }

// begin forgets what was before.
func (g *gap) begin() {
	g.last.Store(int64(time.Since(g.start)))
	g.longest.Store(0)
}

// end notes a grant, or the end of the time that counts.
func (g *gap) end() {
	now := int64(time.Since(g.start))
	raise(&g.longest, now-g.last.Swap(now))
}

func (g *gap) value() time.Duration { return time.Duration(g.longest.Load()) }

// raise makes a number as large as n at least.
func raise(number *atomic.Int64, n int64) {
	for old := number.Load(); n > old && !number.CompareAndSwap(old, n); old = number.Load() {
	}
}

// crowd counts the permits of one semaphore that clients hold by their own count.
type crowd struct {
	now, most atomic.Int64
}

func (c *crowd) enter() {
	raise(&c.most, c.now.Add(1))
}

func (c *crowd) leave() { c.now.Add(-1) }
