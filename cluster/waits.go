package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

const (
	// leaveAfter is how long after its WAIT a node itself asks for a place to be given up. The state
	// machine ends waits by its own clock; this is the backstop for when that clock is late.
	leaveAfter = 50 * time.Millisecond
	// uncertainAfter is how long after its WAIT a request is answered at the latest.
	uncertainAfter = 900 * time.Millisecond
)

// wait is one of this node's requests that stands in line. Its fields are guarded by waits.mu.
type wait struct {
	acquire semaphore.Acquire
	ticket  semaphore.Ticket // zero while it is adrift
	done    chan semaphore.Reply
	ends    time.Duration // when its WAIT has passed
	timer   *time.Timer
	asks    *run // while it is adrift: what asks again for it
	deaf    bool // its client was told an error: a grant is to be given back
	leaving bool // its client has asked to leave
}

// parting says how far this node, whose process ends, has come with handing over its waiters.
type parting int

const (
	staying parting = iota
	leaving         // the leader is asked to write that this life of the node is over
	left            // the log says so: the places are kept for whoever comes back at another node
)

// waits are the requests that came through this node and stand in line. A wait enters when the log, or
// the leader, says that the request joined a line, and leaves when they say how that ended.
//
// When the log says that this node was given up for lost, or when a snapshot was installed over what
// became of them, waits are adrift: the node asks again for each (fsm.Rejoin), and its client notices
// nothing.
type waits struct {
	submit  func(semaphore.Request)          // hands a request of the node's own to the queue
	again   func(w *wait, q fsm.Rejoin) *run // makes a run of it, for a wait that is adrift
	rejoin  func(*run)                       // hands that run to the queue
	part    func()                           // asks the leader to give this life of the node up; nil: there are no other nodes
	now     func() time.Duration             // on the monotonic clock
	grace   time.Duration
	metrics *Metrics

	mu     sync.Mutex
	all    map[uint64]*wait // by ticket number
	adrift map[*wait]struct{}
	closed bool
	parts  parting
	late   map[*time.Timer]struct{} // clean-ups that are due later
}

func newWaits(submit func(semaphore.Request), again func(*wait, fsm.Rejoin) *run, rejoin func(*run), now func() time.Duration, grace time.Duration, metrics *Metrics) *waits {
	return &waits{
		submit: submit, again: again, rejoin: rejoin, now: now, grace: grace, metrics: metrics,
		all: make(map[uint64]*wait), adrift: make(map[*wait]struct{}), late: make(map[*time.Timer]struct{}),
	}
}

// join registers a request that stands in line until its WAIT ends.
func (ws *waits) join(t semaphore.Ticket, a semaphore.Acquire, ends time.Duration) *semaphore.Waiting {
	w := &wait{ticket: t, acquire: a, done: make(chan semaphore.Reply, 1), ends: ends}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		w.done <- semaphore.Reply{Err: semaphore.ErrShutdown}
		return &semaphore.Waiting{Done: w.done, Leave: func() {}}
	}
	ws.all[t.Number] = w
	w.timer = time.AfterFunc(ends+leaveAfter-ws.now(), func() {
		ws.leave(w)
		ws.giveUpLater(w)
	})
	return &semaphore.Waiting{Done: w.done, Leave: func() { ws.leave(w) }, Quit: func() { ws.quit(w) }}
}

// quit ends the wait because this node's process ends. Where there are other nodes, the place is kept
// for a client that comes back there.
func (ws *waits) quit(w *wait) {
	ws.mu.Lock()
	first := ws.parts == staying && ws.part != nil
	if first {
		ws.parts = leaving
	}
	kept := ws.parts == leaving
	ws.mu.Unlock()
	switch {
	case first:
		ws.part()
	case !kept:
		ws.leave(w)
	}
}

// isParting reports whether the leader is to be asked to give this life of the node up.
func (ws *waits) isParting() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.parts == leaving
}

// leave asks for the place to be given up; while the wait is adrift, as soon as it has one.
func (ws *waits) leave(w *wait) {
	ws.mu.Lock()
	w.leaving = true
	stands := ws.all[w.ticket.Number] == w
	request := w.departure()
	ws.mu.Unlock()
	if stands {
		ws.submit(request)
	}
}

// departure is the request that gives up the place.
func (w *wait) departure() semaphore.Request {
	return fsm.Leave{Key: w.acquire.Key, Holder: w.acquire.Holder, Ticket: w.ticket}
}

// waiting reports whether the wait has not ended. Must be called under the lock.
func (ws *waits) waiting(w *wait) bool {
	_, drifts := ws.adrift[w]
	return drifts || ws.all[w.ticket.Number] == w
}

// giveUpLater answers the wait as uncertain when the log has not told its end in time.
func (ws *waits) giveUpLater(w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed || !ws.waiting(w) {
		return
	}
	w.timer = time.AfterFunc(w.ends+uncertainAfter-ws.now(), func() { ws.giveUp(w) })
}

func (ws *waits) giveUp(w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !ws.waiting(w) || w.deaf {
		return
	}
	w.deaf = true
	ws.metrics.uncertain.Inc()
	w.done <- semaphore.Reply{Err: semaphore.Uncertain(w.acquire.Holder)}
}

// joinDeaf registers a request that joined a line after its client had been told that its outcome is
// unknown. The client may come back for the place within the grace.
func (ws *waits) joinDeaf(t semaphore.Ticket, a semaphore.Acquire) {
	w := &wait{ticket: t, acquire: a, deaf: true}
	ws.mu.Lock()
	ws.all[t.Number] = w
	request := w.departure()
	ws.mu.Unlock()
	ws.later(request)
}

// end delivers the end of a wait, as the log or the leader tells it.
func (ws *waits) end(e fsm.Event) {
	ws.mu.Lock()
	w := ws.all[e.Ticket.Number]
	delete(ws.all, e.Ticket.Number)
	ws.mu.Unlock()
	if w != nil {
		ws.deliver(w, e.Reply)
	}
}

// deliver tells a wait that has left the books how it ended.
func (ws *waits) deliver(w *wait, reply semaphore.Reply) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if !w.deaf {
		w.done <- reply
		return
	}
	if g, ok := reply.Value.(*semaphore.Grant); ok && !g.Replayed {
		ws.later(giveBack(w.acquire.Key, g))
	}
}

// givenUp is told by this node's log that it was given up for lost: those who joined a line until then
// ask again. upTo is the youngest ticket that the log has shown; the leader may have told of younger ones.
func (ws *waits) givenUp(upTo uint64) {
	ws.mu.Lock()
	if ws.parts == leaving {
		ws.parts = left
		ws.dismiss()
		ws.mu.Unlock()
		return
	}
	var lost []*wait
	for number, w := range ws.all {
		if number <= upTo {
			lost = append(lost, w)
		}
	}
	ws.drift(lost)
}

// hidden is told that a snapshot was installed over what became of waits: all ask again. Of those adrift
// it is not known whether they have arrived.
func (ws *waits) hidden() {
	ws.mu.Lock()
	var lost []*wait
	for _, w := range ws.all {
		lost = append(lost, w)
	}
	for w := range ws.adrift {
		lost = append(lost, w)
	}
	ws.drift(lost)
}

// drift makes waits ask again, in the order of the places that they had. It is called under the lock,
// and releases it.
func (ws *waits) drift(lost []*wait) {
	slices.SortFunc(lost, func(a, b *wait) int { return cmp.Compare(a.ticket.Number, b.ticket.Number) })
	var asking []*run
	for _, w := range lost {
		delete(ws.all, w.ticket.Number)
		if w.deaf {
			delete(ws.adrift, w)
			continue
		}
		q := fsm.Rejoin{Acquire: w.acquire, Old: w.ticket}
		q.Wait = max(0, w.ends-ws.now())
		w.ticket = semaphore.Ticket{}
		w.asks = ws.again(w, q)
		ws.adrift[w] = struct{}{}
		asking = append(asking, w.asks)
	}
	ws.mu.Unlock()
	for _, r := range asking {
		ws.rejoin(r)
	}
}

// arrive ends the drifting of a wait: the log or the leader has answered the request that it repeated.
// What it has asked before that does not count any more.
func (ws *waits) arrive(r *run, t semaphore.Ticket, reply semaphore.Reply) {
	w := r.again
	ws.mu.Lock()
	if _, drifts := ws.adrift[w]; !drifts || w.asks != r {
		ws.mu.Unlock()
		return
	}
	delete(ws.adrift, w)
	w.asks = nil
	_, inLine := reply.Value.(fsm.InLine)
	if !inLine {
		ws.mu.Unlock()
		ws.deliver(w, reply)
		return
	}
	w.ticket = t
	ws.all[t.Number] = w
	request, leaving, deaf := w.departure(), w.leaving, w.deaf
	ws.mu.Unlock()
	switch {
	case deaf:
		ws.later(request)
	case leaving:
		ws.submit(request)
	}
}

// later submits a request of the node's own when the grace has passed.
func (ws *waits) later(r semaphore.Request) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(ws.grace, func() {
		ws.mu.Lock()
		delete(ws.late, t)
		ws.mu.Unlock()
		ws.submit(r)
	})
	ws.late[t] = struct{}{}
}

// close ends every wait with ErrShutdown: it was not granted so far, as far as this node has seen.
func (ws *waits) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	ws.dismiss()
	for t := range ws.late {
		t.Stop()
	}
	clear(ws.late)
}

// dismiss answers every wait ErrShutdown. Must be called under the lock.
func (ws *waits) dismiss() {
	for _, w := range ws.all {
		ws.adrift[w] = struct{}{}
	}
	for w := range ws.adrift {
		if w.timer != nil {
			w.timer.Stop()
		}
		if !w.deaf {
			w.done <- semaphore.Reply{Err: semaphore.ErrShutdown}
		}
	}
	clear(ws.all)
	clear(ws.adrift)
}

// length returns how many requests of this node stand in line.
func (ws *waits) length() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all) + len(ws.adrift)
}

func giveBack(key string, g *semaphore.Grant) semaphore.Request {
	return fsm.GiveBack{Key: key, Holder: g.Holder, Token: g.Token, Ticket: g.Ticket}
}
