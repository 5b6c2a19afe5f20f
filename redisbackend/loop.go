package redisbackend

import (
	"sync"
	"time"
)

// loop is one goroutine and the desks that live in it. What is done to a desk is done by a function
// that is posted to its loop.
type loop struct {
	mu     sync.Mutex
	inbox  []func()
	closed bool
	wake   chan struct{} // holds one element while the inbox is not empty

	// The rest belongs to the goroutine.
	office *office
	desks  map[string]*desk
	busy   []*desk // desks that may have a call to make
	alarms alarms
}

func newLoop(o *office) *loop {
	return &loop{office: o, desks: make(map[string]*desk), wake: make(chan struct{}, 1)}
}

// post has f called by the loop, after everything that was posted before it. It reports false when
// the loop has ended: f is not called then.
func (l *loop) post(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.inbox = append(l.inbox, f)
	if len(l.inbox) == 1 {
		l.wake <- struct{}{}
	}
	return true
}

// take returns what has been posted since the last time.
func (l *loop) take(spare []func()) []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	posted := l.inbox
	l.inbox = spare[:0]
	return posted
}

// run is the goroutine. It ends when it has called end, posted or rung, which sets over.
func (l *loop) run(over *bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var posted []func()
	for !*over {
		timer.Reset(l.untilNext())
		select {
		case <-l.wake:
			posted = l.take(posted)
			for i, f := range posted {
				f()
				posted[i] = nil
			}
		case <-timer.C:
		}
		l.alarms.ring(time.Now())
		l.serve()
	}
}

func (l *loop) untilNext() time.Duration {
	next, set := l.alarms.next()
	if !set {
		return time.Hour
	}
	return max(0, time.Until(next))
}

// serve lets every desk to which something happened make its call, and puts away those that have
// nothing left to do.
func (l *loop) serve() {
	for len(l.busy) > 0 {
		busy := l.busy
		l.busy = nil
		for _, d := range busy {
			d.busy = false
			d.call()
			if d.unused() {
				d.putAway()
				delete(l.desks, d.key)
			}
		}
	}
}

// desk returns the desk of a semaphore, setting it up if there is none, and notes that something
// happens to it.
func (l *loop) desk(key string) *desk {
	d := l.desks[key]
	if d == nil {
		d = newDesk(l, key)
		l.desks[key] = d
	}
	l.touch(d)
	return d
}

// touch has the desk look for a call to make.
func (l *loop) touch(d *desk) {
	if !d.busy {
		d.busy = true
		l.busy = append(l.busy, d)
	}
}
