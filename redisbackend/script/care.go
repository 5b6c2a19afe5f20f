package script

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// Create builds the call that makes a semaphore, or confirms one. Keys that clients work on by hand are
// taken over as they are. maxSemaphores bounds the registry that it is named in.
func (l *Library) Create(stamp Stamp, c semaphore.Create, maxSemaphores int) Call {
	var p packed
	p.number(c.Capacity)
	p.number(c.MinToken)
	p.number(int64(maxSemaphores))
	p.truth(c.IfAbsent)
	p.settings(c.Settings)
	return l.care(l.create, stamp, c.Key, p)
}

// Resize builds the call that changes the capacity and the settings that are given.
func (l *Library) Resize(stamp Stamp, r semaphore.Resize) Call {
	var p packed
	p.number(r.Capacity)
	p.settings(r.Settings)
	return l.care(l.resize, stamp, r.Key, p)
}

// Delete builds the call that removes a semaphore. Under the same ticket it is answered as the first
// time.
func (l *Library) Delete(stamp Stamp, d semaphore.Delete, t semaphore.Ticket) Call {
	var p packed
	p.truth(d.Force)
	p.text(ticket(t))
	return l.care(l.remove, stamp, d.Key, p)
}

// Reconcile builds the call that makes the books balance at once: it ends what has expired, as far as
// one call goes, and then puts the free permits at what they should be. It can be part of a transaction,
// behind a WATCH of the two public keys. Under the same ticket it is answered as the first time.
func (l *Library) Reconcile(stamp Stamp, r semaphore.Reconcile, t semaphore.Ticket, maxSemaphores int) Call {
	var p packed
	p.truth(r.Adopt)
	p.number(r.Capacity)
	p.number(int64(maxSemaphores))
	p.text(ticket(t))
	return l.care(l.reconcile, stamp, r.Key, p)
}

// Tend builds the call that looks after a semaphore from time to time: it ends what has expired, as far
// as one call goes, trims free permits beyond the capacity, clears away what is stale, removes the
// semaphore when it was idle for too long, and sees that the registry names it. It restores no
// shortfall: somebody may be between taking a permit by hand and saying so.
func (l *Library) Tend(stamp Stamp, key string) Call {
	return l.care(l.tend, stamp, key, nil)
}

// Drift is what a look at a semaphore found.
type Drift struct {
	Now     int64         // Redis's clock, in milliseconds
	Gone    bool          // there is no such semaphore, or not any more
	Raw     bool          // there is none, but clients work on its public keys by hand
	Freed   int64         // permits put back into circulation: those of leases that had ended
	Missing int64         // permits that the books lack
	More    bool          // there is more to be done at once than one call does
	NextEnd time.Duration // until permits fall free by themselves; negative: not at all
	Ended   int64         // leases that were found to have ended
}

// ReadTend reads the reply to Tend. ErrVoid: it did nothing.
func ReadTend(raw any) (*Drift, error) {
	r, err := open(raw)
	if err != nil {
		return nil, err
	}
	d := &Drift{Now: r.number(), Gone: r.number() == 1, Raw: r.number() == 1, Freed: r.number(), Missing: r.number(), More: r.number() == 1, NextEnd: -1}
	if next := r.number(); next >= 0 {
		d.NextEnd = time.Duration(next) * time.Millisecond
	}
	d.Ended = r.number()
	return d, r.err
}

func (l *Library) care(s *Script, stamp Stamp, key string, p packed) Call {
	args := append(stamp.args(), string(p), l.place(key))
	return Call{Script: s, Keys: l.layout.keysAndRegistry(key), Args: args}
}

// settings writes each setting in milliseconds; -1 where it is not given.
func (p *packed) settings(s semaphore.Settings) {
	for _, one := range []semaphore.Setting{s.Lease, s.MaxLease, s.MaxHold, s.Quarantine, s.Idle} {
		if one.Given {
			p.number(millis(one.Value))
		} else {
			p.number(-1)
		}
	}
}

// Answer is what became of a request that has a call of its own.
type Answer struct {
	semaphore.Reply
	Now  int64 // Redis's clock, in milliseconds
	More bool  // of a Reconcile: there is more to be done at once than one call does
}

// ReadAnswer reads the reply to the call of a Create, Resize, Delete or Reconcile. ErrVoid: it did
// nothing.
func ReadAnswer(request semaphore.Request, raw any) (*Answer, error) {
	r, err := open(raw)
	if err != nil {
		return nil, err
	}
	a := &Answer{Now: r.number()}
	code := r.number()
	_, isCreate := request.(semaphore.Create)
	_, isResize := request.(semaphore.Resize)
	switch {
	case code > codeNumber:
		a.Err = r.refusal(code, asked{})
	case isCreate:
	case isResize:
		a.Value = semaphore.Usage{Capacity: r.number(), InUse: r.number(), Available: r.number()}
	case code == codeNumber:
		a.Value, a.More = semaphore.Number(r.number()), r.number() == 1
	default:
		a.Value = semaphore.Number(code)
	}
	return a, r.err
}
