package redisbackend

import (
	"context"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// drainEvery is how often a loop that ends looks whether all is done.
const drainEvery = 5 * time.Millisecond

// drain ends the loop when its desks have nothing left to do, at the latest when ctx ends.
func (l *loop) drain(ctx context.Context, over *bool) {
	for _, d := range l.desks {
		d.hunt = nil // whoever hunts has stopped
		l.touch(d)
		for _, w := range d.line.first(d.line.len()) {
			d.part(w, true)
		}
	}
	look := &alarm{}
	look.ring = func() {
		if len(l.desks) > 0 && ctx.Err() == nil {
			l.alarms.put(look, time.Now().Add(drainEvery))
			return
		}
		l.end()
		*over = true
	}
	l.alarms.put(look, time.Now())
}

// end answers whoever is left, and takes nothing more.
func (l *loop) end() {
	l.mu.Lock()
	l.closed = true
	posted := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, f := range posted {
		f()
	}
	for _, d := range l.desks {
		d.end()
	}
}

// end answers everybody at the desk.
func (d *desk) end() {
	if f := d.flight; f != nil {
		for _, it := range f.items {
			it.happened(true)
			it.answer(d.undecided(it))
		}
		for _, w := range f.waiters {
			w.doubted = true
		}
	}
	for _, it := range d.queue {
		it.happened(true)
		if it.doubtful {
			it.answer(it.uncertain())
			continue
		}
		it.answer(semaphore.Reply{Err: semaphore.ErrShutdown})
	}
	for w := d.line.head(); w != nil; w = d.line.head() {
		d.leaves(w)
		if w.doubted {
			w.tell(w.uncertain())
		}
		w.tell(semaphore.Reply{Err: semaphore.ErrShutdown})
	}
}
