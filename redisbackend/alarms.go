package redisbackend

import "time"

// alarm is something that is due at a time. The zero alarm is not set.
type alarm struct {
	at   time.Time
	ring func()
	set  int // 1 + its index in the heap; 0: not set
}

// alarms are a heap of what is due, the next one first. It has one user.
type alarms struct {
	heap []*alarm
}

// put sets an alarm, or moves it to another time.
func (as *alarms) put(a *alarm, at time.Time) {
	a.at = at
	if a.set == 0 {
		as.heap = append(as.heap, a)
		a.set = len(as.heap)
	}
	as.fix(a.set - 1)
}

// drop stops an alarm. One that is not set is left alone.
func (as *alarms) drop(a *alarm) {
	if a.set == 0 {
		return
	}
	i, last := a.set-1, len(as.heap)-1
	as.swap(i, last)
	as.heap[last] = nil
	as.heap = as.heap[:last]
	a.set = 0
	if i < last {
		as.fix(i)
	}
}

// next is when the first alarm is due; false: none is set.
func (as *alarms) next() (time.Time, bool) {
	if len(as.heap) == 0 {
		return time.Time{}, false
	}
	return as.heap[0].at, true
}

// ring takes what is due by now, earliest first, and rings each.
func (as *alarms) ring(now time.Time) {
	for len(as.heap) > 0 && !as.heap[0].at.After(now) {
		a := as.heap[0]
		as.drop(a)
		a.ring()
	}
}

func (as *alarms) swap(i, j int) {
	h := as.heap
	h[i], h[j] = h[j], h[i]
	h[i].set, h[j].set = i+1, j+1
}

// fix restores the order around one element that may be out of place.
func (as *alarms) fix(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !as.heap[i].at.Before(as.heap[parent].at) {
			break
		}
		as.swap(i, parent)
		i = parent
	}
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(as.heap); child++ {
			if as.heap[child].at.Before(as.heap[least].at) {
				least = child
			}
		}
		if least == i {
			return
		}
		as.swap(i, least)
		i = least
	}
}
