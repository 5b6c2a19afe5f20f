package semaphore

import "time"

// Reply is what became of one request: a value, or an error that says why there is none.
//
// The value's type follows from the request:
//
//	Create                    nil
//	Acquire                   *Grant; nil: no permit in time; *Waiting: stands in line
//	Release, Cancel, Check,   Number: 1 or 0
//	Delete
//	Renew                     Number: milliseconds of the lease now in force, -1 for Persist, 0: was not held
//	Reconcile                 Number: permits put back into circulation
//	Resize                    Usage
//	Inspect                   *Info
//	Holders, Waiters, Scan    *HolderPage, *WaiterPage, *KeyPage
type Reply struct {
	Value any
	Err   error
}

// Number is a reply that is a count, or a truth as 1 or 0.
type Number int64

// Ticket names one request's place in line, and the grant that came of it: the incarnation of the
// node that it came through, and a number that this incarnation used once. The zero Ticket is none.
type Ticket struct {
	Incarnation uint64
	Number      uint64
}

// Range is a run of slots, both ends included.
type Range struct {
	First, Last int64
}

// Grant is what a holder is told. It carries a duration, because clocks are not shared with clients.
// A Grant is never changed once it is made.
type Grant struct {
	Holder   string
	Token    int64
	Slots    []Range       // in growing order; empty where the permits have no slots
	Lease    time.Duration // what is left of it; Persist: never expires
	Replayed bool          // the holder had it already
	Ticket   Ticket        // of the request that this grant answers
}

// Slot is the lowest place occupied, or -1 where the permits have no slots.
func (g *Grant) Slot() int64 {
	if len(g.Slots) == 0 {
		return -1
	}
	return g.Slots[0].First
}

// Usage is the state of a semaphore's permits.
type Usage struct {
	Capacity, InUse, Available int64
}

// Info is what is known of one semaphore. Durations that are not set are absent; counters count
// since the semaphore was created.
type Info struct {
	Name string
	Usage
	Excess      int64 // permits in use beyond the capacity, after a Resize down
	Quarantined int64 // permits out of circulation after their lease expired
	Missing     int64 // permits that the books lack (Redis mode)
	Surplus     int64 // permits that the books have too many (Redis mode)
	Rows        int64 // slot rows that the guarded resource needs now: max(capacity, highest slot in use + 1)
	Holders     int64
	Waiters     int64
	Orphans     int64         // waiters whose node was lost
	OldestWait  time.Duration // how long the head of the line has waited; 0: nobody waits
	NextExpiry  Setting       // until the next lease ends; absent: none
	LastToken   int64
	Settings    Settings
	Counters    Counters
}

// Counters count what happened to a semaphore since it was created.
type Counters struct {
	GrantsImmediate int64         // grants without waiting
	GrantsWaited    int64         // grants to waiters
	Refused         int64         // no permit, without WAIT
	WaitTimeouts    int64         // waits that ended without a grant
	WaitTotal       time.Duration // time that waiters spent in line, however it ended
	Releases        int64
	Renewals        int64
	Expirations     int64 // leases that ended while held
	Reconciled      int64 // permits put back by Reconcile
	HeldTotal       time.Duration
}

// HolderRow is one live grant in a listing.
type HolderRow struct {
	Holder    string
	Token     int64
	Slot      int64
	Permits   int64
	Remaining time.Duration // of the lease; Persist: never expires
	Held      time.Duration // since the grant
	Client    string
}

// WaiterRow is one place in line.
type WaiterRow struct {
	Holder    string
	Permits   int64
	Waited    time.Duration
	Remaining time.Duration // until the wait ends
	Client    string
}

// HolderPage is a part of a listing of grants. Next is the cursor to go on with; 0: that was all.
type HolderPage struct {
	Next uint64
	Rows []HolderRow
}

// WaiterPage is a part of a listing of a line.
type WaiterPage struct {
	Next uint64
	Rows []WaiterRow
}

// KeyPage is a part of a listing of names.
type KeyPage struct {
	Next uint64
	Keys []string
}
