package script

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

// Inspect builds the call that reads the figures of one semaphore. It may end what has expired on the
// way.
func (l *Library) Inspect(stamp Stamp, i semaphore.Inspect) Call {
	return l.care(l.inspect, stamp, i.Key, nil)
}

// ReadInspect reads the reply to Inspect: an Info without what only a line knows, or an error.
func ReadInspect(i semaphore.Inspect, raw any) (*Answer, error) {
	r, err := open(raw)
	if err != nil {
		return nil, err
	}
	a := &Answer{Now: r.number()}
	if code := r.number(); code != codeYes {
		a.Err = r.refusal(code, asked{})
		return a, r.err
	}
	info := &semaphore.Info{Name: i.Key}
	info.Capacity, info.InUse, info.Available = r.number(), r.number(), r.number()
	info.Excess, info.Quarantined, info.Missing, info.Surplus = r.number(), r.number(), r.number(), r.number()
	info.Rows, info.Holders, info.LastToken = r.number(), r.number(), r.number()
	if next := r.number(); next >= 0 {
		info.NextExpiry = semaphore.Set(time.Duration(next) * time.Millisecond)
	}
	info.Settings = r.settings()
	info.Counters = r.counters()
	a.Value = info
	return a, r.err
}

func (r *reply) counters() semaphore.Counters {
	ms := func() time.Duration { return time.Duration(r.number()) * time.Millisecond }
	return semaphore.Counters{
		GrantsImmediate: r.number(), GrantsWaited: r.number(), Refused: r.number(),
		WaitTimeouts: r.number(), WaitTotal: ms(), Releases: r.number(), Renewals: r.number(),
		Expirations: r.number(), Reconciled: r.number(), HeldTotal: ms(),
	}
}
