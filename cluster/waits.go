package cluster

import (
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

// wait is one of this node's requests that stands in line.
type wait struct {
	ticket      semaphore.Ticket
	key, holder string
	done        chan semaphore.Reply
	ends        time.Duration // when its WAIT has passed
	timer       *time.Timer
	deaf        bool // its client was told an error: a grant is to be given back
}

// waits are the requests that came through this node and stand in line, by ticket number. A wait
// enters when the log says that the request joined a line, and leaves when the log says how that ended.
type waits struct {
	submit  func(semaphore.Request) // hands a request of the node's own to the queue
	now     func() time.Duration    // on the monotonic clock
	grace   time.Duration
	metrics *Metrics

	mu     sync.Mutex
	all    map[uint64]*wait
	closed bool
	late   map[*time.Timer]struct{} // clean-ups that are due later
}

func newWaits(submit func(semaphore.Request), now func() time.Duration, grace time.Duration, metrics *Metrics) *waits {
	return &waits{submit: submit, now: now, grace: grace, metrics: metrics, all: make(map[uint64]*wait), late: make(map[*time.Timer]struct{})}
}

// join registers a request that stands in line until its WAIT ends.
func (ws *waits) join(t semaphore.Ticket, a semaphore.Acquire, ends time.Duration) *semaphore.Waiting {
	w := &wait{ticket: t, key: a.Key, holder: a.Holder, done: make(chan semaphore.Reply, 1), ends: ends}
	leave := func() { ws.submit(fsm.Leave{Key: w.key, Holder: w.holder, Ticket: t}) }
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		w.done <- semaphore.Reply{Err: semaphore.ErrShutdown}
		return &semaphore.Waiting{Done: w.done, Leave: func() {}}
	}
	ws.all[t.Number] = w
	w.timer = time.AfterFunc(ends+leaveAfter-ws.now(), func() {
		leave()
		ws.giveUpLater(w)
	})
	return &semaphore.Waiting{Done: w.done, Leave: leave}
}

// giveUpLater answers the wait as uncertain when the log has not told its end in time.
func (ws *waits) giveUpLater(w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed || ws.all[w.ticket.Number] != w {
		return
	}
	w.timer = time.AfterFunc(w.ends+uncertainAfter-ws.now(), func() { ws.giveUp(w) })
}

func (ws *waits) giveUp(w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.all[w.ticket.Number] != w || w.deaf {
		return
	}
	w.deaf = true
	ws.metrics.uncertain.Inc()
	w.done <- semaphore.Reply{Err: semaphore.Uncertain(w.holder)}
}

// joinDeaf registers a request that joined a line after its client had been told that its outcome is
// unknown. The client may come back for the place within the grace.
func (ws *waits) joinDeaf(t semaphore.Ticket, a semaphore.Acquire) {
	ws.mu.Lock()
	ws.all[t.Number] = &wait{ticket: t, key: a.Key, holder: a.Holder, deaf: true}
	ws.mu.Unlock()
	ws.later(fsm.Leave{Key: a.Key, Holder: a.Holder, Ticket: t})
}

// end delivers the end of a wait, as the log tells it.
func (ws *waits) end(e fsm.Event) {
	ws.mu.Lock()
	w := ws.all[e.Ticket.Number]
	delete(ws.all, e.Ticket.Number)
	if w != nil && w.timer != nil {
		w.timer.Stop()
	}
	ws.mu.Unlock()
	if w == nil {
		return
	}
	if !w.deaf {
		w.done <- e.Reply
		return
	}
	if g, ok := e.Reply.Value.(*semaphore.Grant); ok {
		ws.later(giveBack(w.key, g))
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
	for _, w := range ws.all {
		if w.timer != nil {
			w.timer.Stop()
		}
		if !w.deaf {
			w.done <- semaphore.Reply{Err: semaphore.ErrShutdown}
		}
	}
	clear(ws.all)
	for t := range ws.late {
		t.Stop()
	}
	clear(ws.late)
}

// length returns how many requests of this node stand in line.
func (ws *waits) length() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all)
}

func giveBack(key string, g *semaphore.Grant) semaphore.Request {
	return fsm.GiveBack{Key: key, Holder: g.Holder, Token: g.Token, Ticket: g.Ticket}
}
