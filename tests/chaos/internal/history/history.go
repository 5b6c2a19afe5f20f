package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Fault is something that was done to the cluster.
type Fault struct {
	From, To time.Duration
	What     string
	Mute     []int // nodes that could not answer anybody meanwhile
}

// Reign is the first time that a node was seen to lead in a term.
type Reign struct {
	Seen time.Duration
	Node int
	Term int64
}

// Log is a whole history: operations in the order of their calls, faults and reigns in that of their
// beginning.
type Log struct {
	Ops    []Op
	Faults []Fault
	Reigns []Reign
}

// Recorder collects a history. Its methods may be called by many goroutines at once.
type Recorder struct {
	began time.Time

	mu    sync.Mutex
	log   Log
	terms map[int64]bool
}

// NewRecorder begins a history now.
func NewRecorder() *Recorder {
	return &Recorder{began: time.Now(), terms: map[int64]bool{}}
}

// Now is the time since the beginning.
func (r *Recorder) Now() time.Duration { return time.Since(r.began) }

// Add notes a request that was answered, or will not be.
func (r *Recorder) Add(o Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Ops = append(r.log.Ops, o)
}

// AddFault notes a fault that is over.
func (r *Recorder) AddFault(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Faults = append(r.log.Faults, f)
}

// SawLeader notes that a node said that it led in a term.
func (r *Recorder) SawLeader(node int, term int64) {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.terms[term] {
		r.terms[term] = true
		r.log.Reigns = append(r.log.Reigns, Reign{now, node, term})
	}
}

// Log is what has been recorded so far.
func (r *Recorder) Log() Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := Log{slices.Clone(r.log.Ops), slices.Clone(r.log.Faults), slices.Clone(r.log.Reigns)}
	slices.SortStableFunc(l.Ops, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	slices.SortStableFunc(l.Faults, func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
	return l
}

// Of are the operations on one semaphore.
func (l Log) Of(key string) []Op {
	var ops []Op
	for _, o := range l.Ops {
		if o.Key == key {
			ops = append(ops, o)
		}
	}
	return ops
}

// Keys are the semaphores that occur, in order.
func (l Log) Keys() []string {
	var keys []string
	for _, o := range l.Ops {
		keys = append(keys, o.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// WriteTo writes the whole history, a line each, in the order of calls.
func (l Log) WriteTo(w io.Writer) (int64, error) {
	var written int64
	for _, line := range l.lines(func(Op) bool { return true }, 0, 1<<62) {
		n, err := fmt.Fprintln(w, line)
		written += int64(n)
		if err != nil {
			return written, fmt.Errorf("write history: %w", err)
		}
	}
	return written, nil
}

// Excerpt is what happened to a semaphore in a span of time, and to the cluster, at most most lines.
func (l Log) Excerpt(key string, from, to time.Duration, most int) string {
	lines := l.lines(func(o Op) bool { return o.Key == key && o.Kind != Waiters }, from, to)
	text := ""
	for i, line := range lines {
		if i == most {
			text += fmt.Sprintf("  … and %d lines\n", len(lines)-most)
			break
		}
		text += "  " + line + "\n"
	}
	return text
}

func (l Log) lines(wanted func(Op) bool, from, to time.Duration) []string {
	type line struct {
		at   time.Duration
		text string
	}
	var all []line
	for _, o := range l.Ops {
		if wanted(o) && o.Return >= from && o.Call <= to {
			all = append(all, line{o.Call, o.String()})
		}
	}
	for _, f := range l.Faults {
		if f.To >= from && f.From <= to {
			all = append(all, line{f.From, fmt.Sprintf("%s - %s  FAULT %s", stamp(f.From), stamp(f.To), f.What)})
		}
	}
	for _, r := range l.Reigns {
		if r.Seen >= from && r.Seen <= to {
			all = append(all, line{r.Seen, fmt.Sprintf("%s              node %d leads in term %d", stamp(r.Seen), r.Node, r.Term)})
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.text
	}
	return texts
}
