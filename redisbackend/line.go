package redisbackend

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/semserver/semserver/semaphore"
)

// waiter is an Acquire with a WAIT: at first it is only asked for, then it stands in line. It belongs
// to the loop of its desk.
type waiter struct {
	acquire semaphore.Acquire
	ticket  semaphore.Ticket
	place   uint64    // in line; 0: it does not stand there
	arrived time.Time // since when it, or the request whose place it took over, has waited
	arrival int64     // when it joined the line, by Redis's clock in milliseconds
	ends    time.Time // when its WAIT has passed

	done    chan semaphore.Reply
	apart   bool  // Do has returned: what becomes of it is told on done
	offered bool  // a call is under way that may get it something, or take back what it got
	doubted bool  // a call that was lost may have got it something
	leaving bool  // it is to leave as soon as it is known that it got nothing
	quits   bool  // it leaves because the server stops
	told    bool  // its reply is on done
	end     alarm // at the end of its WAIT
}

// tell ends the wait for its client. Only the first reply counts.
func (w *waiter) tell(r semaphore.Reply) {
	if w.told {
		return
	}
	w.told = true
	w.done <- r
}

// line is who waits for one semaphore, strictly first come, first served.
type line struct {
	places btree.Map[uint64, *waiter]
	holder map[string]*waiter
	last   uint64 // the place given last
}

func (l *line) len() int { return len(l.holder) }

// find returns who waits under a holder's id, or nil.
func (l *line) find(holder string) *waiter { return l.holder[holder] }

// head returns who has waited longest, or nil.
func (l *line) head() *waiter {
	_, w, _ := l.places.Min()
	return w
}

// join puts a waiter at the end. No other with the same holder may stand there.
func (l *line) join(w *waiter) {
	if l.holder == nil {
		l.holder = make(map[string]*waiter)
	}
	l.last++
	l.put(w, l.last)
}

// takeOver puts a newer request in the place of an older one of the same holder.
func (l *line) takeOver(older, newer *waiter) {
	place := older.place
	newer.arrival, newer.arrived = older.arrival, older.arrived
	l.leave(older)
	l.put(newer, place)
}

func (l *line) put(w *waiter, place uint64) {
	w.place = place
	l.places.Set(place, w)
	l.holder[w.acquire.Holder] = w
}

// leave takes a waiter out. One that does not stand in line is left alone.
func (l *line) leave(w *waiter) {
	if w.place == 0 {
		return
	}
	l.places.Delete(w.place)
	delete(l.holder, w.acquire.Holder)
	w.place = 0
}

// first returns up to n waiters from the head, without those who are leaving.
func (l *line) first(n int) []*waiter {
	var found []*waiter
	l.places.Scan(func(_ uint64, w *waiter) bool {
		if len(found) == n {
			return false
		}
		if !w.leaving {
			found = append(found, w)
		}
		return true
	})
	return found
}

// page lists the line from a place on, 0 from the head.
func (l *line) page(from uint64, count int, now time.Time) *semaphore.WaiterPage {
	page := &semaphore.WaiterPage{}
	l.places.Ascend(from, func(place uint64, w *waiter) bool {
		if len(page.Rows) == count {
			page.Next = place
			return false
		}
		page.Rows = append(page.Rows, w.row(now))
		return true
	})
	return page
}

func (w *waiter) row(now time.Time) semaphore.WaiterRow {
	return semaphore.WaiterRow{
		Holder:    w.acquire.Holder,
		Permits:   w.acquire.Permits,
		Waited:    now.Sub(w.arrived),
		Remaining: max(0, w.ends.Sub(now)),
		Client:    w.acquire.Label,
	}
}
