package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// Caps on one entry. A run is never split, so one run that is larger than the bytes still goes alone.
const (
	maxEntryRequests = 2 * semaphore.MaxRun
	maxEntryBytes    = 256 << 10
	// maxInFlight entries are in the log but not applied yet. The second keeps the disk busy while
	// the first is applied; more would only make smaller batches.
	maxInFlight = 2
	// worthSecond is how many requests have to be queued for a second entry. With fewer, it is
	// cheaper, and no slower, to let them join those that arrive until the first has landed.
	worthSecond = 128
	// worthHalving is how many queued requests are split over two entries: one is flushed while the
	// other is applied and its clients send what comes next. All in one would make everybody wait in step.
	worthHalving = 2 * worthSecond
	// sectionHeader is about the size of a section without its requests.
	sectionHeader = 64
)

// flight is what travels to the log together: runs of this node, as one section of an entry. Where the
// node leads, it carries the sections of guests as well.
type flight struct {
	term    uint64 // of the leadership that proposes it
	first   uint64 // ticket number of its first request
	runs    []*run
	section []byte // their requests, encoded; none without runs
	guests  []guestSection
	lost    []uint64 // incarnations that the entry says are lost
	born    time.Duration
	idle    bool // it no longer counts as in flight: its outcome is unknown until the log tells
	missed  bool // a snapshot was installed over it: the log will not tell, though the leader may

	requests, bytes int // of all its runs
}

// queue holds the runs that wait to be proposed and the flights that wait to be applied.
//
// A run goes queue -> flight -> answered. It goes back from flight to queue when it is certain that
// the entry was not applied: Raft refused it, the state machine voided it, or the Open of a later
// term was applied without it.
type queue struct {
	incarnation uint64
	limits      semaphore.Limits

	mu      sync.Mutex
	runs    []*run // oldest first
	flights map[uint64]*flight
	number  uint64 // ticket number used last
	flying  int
	closed  bool
	size    int    // requests in runs
	term    uint64 // of the latest Open applied: nothing of an earlier term will be any more
}

func newQueue(incarnation uint64, limits semaphore.Limits) *queue {
	return &queue{incarnation: incarnation, limits: limits, flights: make(map[uint64]*flight)}
}

// add puts a run at the end. It reports false for accepted when the queue is closed, and for room when
// no entry can be taken now: then the run will be taken when something has landed.
func (q *queue) add(r *run) (accepted, room bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, false
	}
	q.runs = append(q.runs, r)
	q.size += len(r.requests)
	return true, q.room()
}

// take puts the oldest runs into a flight, as many as one entry carries. It returns nil when too much
// is in flight, or when there is nothing to carry and bare is false: a bare entry has none of this
// node's requests. others is how many requests of guests wait to be carried.
func (q *queue) take(term uint64, now time.Duration, bare bool, others int) *flight {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.roomFor(q.size+others) || len(q.runs) == 0 && !bare || term < q.term {
		return nil
	}
	f := &flight{term: term, first: q.number + 1, born: now}
	limit := maxEntryRequests
	if q.flying == 0 && q.size >= worthHalving {
		limit = min(limit, q.size/2)
	}
	taken := 0
	for _, r := range q.runs {
		n := len(r.requests)
		if now-r.written > staleAfter {
			r.encode(now)
		}
		if taken > 0 && (f.requests+n > limit || f.bytes+len(r.encoded) > maxEntryBytes) {
			break
		}
		r.proposed = true
		f.requests += n
		f.bytes += len(r.encoded)
		taken++
	}
	f.runs = slices.Clone(q.runs[:taken])
	q.runs = slices.Delete(q.runs, 0, taken)
	q.size -= f.requests
	q.encode(f)
	q.number += uint64(max(1, f.requests)) // a bare entry needs a key among the flights, too
	q.flights[f.first] = f
	q.flying++
	return f
}

// encode makes a section of a flight's requests. The runs must not change meanwhile, and do so only
// under the queue's lock.
func (q *queue) encode(f *flight) {
	if len(f.runs) == 0 {
		return
	}
	part := fsm.Part{Incarnation: q.incarnation, First: f.first, Requests: f.requests}
	f.section = fsm.AppendSection(make([]byte, 0, sectionHeader+f.bytes), part, q.limits, f.bytes)
	for _, r := range f.runs {
		f.section = append(f.section, r.encoded...)
	}
}

// room reports whether an entry may be taken now.
func (q *queue) room() bool { return q.roomFor(q.size) }

func (q *queue) roomFor(waiting int) bool {
	return q.flying == 0 || q.flying < maxInFlight && waiting >= worthSecond
}

// expects reports whether an answer has as many replies as the flight has requests, if it is known at all.
func (q *queue) expects(first uint64, replies int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.flights[first]
	return f == nil || f.requests == replies
}

// refused queues again what the leader of a term says that it will never propose.
func (q *queue) refused(term, first uint64, now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.flights[first]; f != nil && f.term == term {
		q.remove(f)
		q.requeue(f.runs, now)
	}
}

// outstanding returns what was sent to the leader of a term and is not answered, oldest first. Of what
// was sent to earlier ones and a snapshot hides, nobody will tell any more.
func (q *queue) outstanding(term uint64) []*flight {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []*flight
	for _, f := range q.flights {
		if f.missed && f.term < term {
			q.remove(f)
			abandonAll(f.runs)
			continue
		}
		if f.term == term && len(f.section) > 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *flight) int { return cmp.Compare(a.first, b.first) })
	return all
}

// applied removes the flight that began with this ticket: its outcome is known. It returns nil for
// an entry that this queue does not know.
func (q *queue) applied(first uint64) *flight {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.flights[first]
	q.remove(f)
	return f
}

func (q *queue) remove(f *flight) {
	if f == nil || q.flights[f.first] != f {
		return
	}
	delete(q.flights, f.first)
	if !f.idle {
		q.flying--
	}
}

// landed removes a flight that was applied, where the state machine had nobody to answer: a bare one.
func (q *queue) landed(f *flight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(f)
}

// unresolved says that Raft cannot tell what became of the entry. The log will, or has done so.
func (q *queue) unresolved(f *flight, now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flights[f.first] != f || f.idle {
		return
	}
	if f.term < q.term && !f.missed {
		q.remove(f)
		q.requeue(f.runs, now)
		return
	}
	f.idle = true
	q.flying--
}

// again queues the runs of a flight that was certainly not applied, before all that came later.
func (q *queue) again(f *flight, now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flights[f.first] == f {
		q.remove(f)
		q.requeue(f.runs, now)
	}
}

// opened queues again what was proposed under earlier terms and has not been applied: behind the
// Open of a later term it cannot be any more.
func (q *queue) opened(term uint64, now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.term = max(q.term, term)
	var stale []*run
	for _, f := range q.flights {
		if f.term >= term {
			continue
		}
		q.remove(f)
		if f.missed {
			abandonAll(f.runs)
			continue
		}
		stale = append(stale, f.runs...)
	}
	q.requeue(stale, now)
}

// skipped is told that a snapshot was installed over entries that may be among those in flight. The log
// will not tell what became of them; the leader may still do so. What the node itself asked for may be
// asked again.
func (q *queue) skipped(now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var own []*run
	for _, f := range q.flights {
		f.missed = true
		if !f.idle {
			f.idle = true
			q.flying--
		}
		for _, r := range f.runs {
			if r.state.Load() == internal && r.again == nil {
				own = append(own, repeated(r, now))
			}
		}
	}
	q.requeue(own, now)
}

func abandonAll(runs []*run) {
	for _, r := range runs {
		r.abandon(unknown)
	}
}

func (q *queue) requeue(runs []*run, now time.Duration) {
	for _, r := range runs {
		switch r.state.Load() {
		case pending, internal:
			r.proposed = false
			q.runs = append(q.runs, r)
			q.size += len(r.requests)
		}
	}
	slices.SortStableFunc(q.runs, func(a, b *run) int { return int(a.arrived - b.arrived) })
}

// expire tells callers who have waited long enough that their requests could not be decided: what
// was never proposed, or is certain not to have been applied, is dropped; what is in flight is unknown.
func (q *queue) expire(now, hold time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.runs = slices.DeleteFunc(q.runs, func(r *run) bool {
		if r.state.Load() != pending || now < r.deadline(hold) {
			return false
		}
		q.size -= len(r.requests)
		r.abandon(notApplied)
		return true
	})
	for _, f := range q.flights {
		for _, r := range f.runs {
			if r.state.Load() == pending && now >= r.deadline(hold) {
				r.abandon(unknown)
			}
		}
	}
}

// close refuses further runs. Those that were not proposed are answered ErrShutdown, those in flight
// Uncertain.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, r := range q.runs {
		r.abandon(stopped)
	}
	q.runs, q.size = nil, 0
	for _, f := range q.flights {
		for _, r := range f.runs {
			r.abandon(unknown)
		}
	}
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// drained reports whether nothing is queued or in flight.
func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.runs) == 0 && q.flying == 0
}

// lengths returns how many requests wait to be proposed and how many entries are in flight.
func (q *queue) lengths() (queued, flying int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size, q.flying
}
