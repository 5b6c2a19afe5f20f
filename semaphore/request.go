package semaphore

import "time"

// Persist, in place of a lease, asks for a grant that never expires.
const Persist time.Duration = -1

// Request is one of the request types of this package.
type Request interface {
	// Semaphore is the key that the request is about; empty for Scan.
	Semaphore() string
}

// Setting is a duration that may be absent.
type Setting struct {
	Given bool
	Value time.Duration
}

// Set is a Setting that is given.
func Set(d time.Duration) Setting { return Setting{Given: true, Value: d} }

// Settings are the durations that belong to a semaphore. In a request, a setting that is not given
// is left as it is; in a stored semaphore, it is not in force.
type Settings struct {
	Lease      Setting // lease of a grant whose request names none
	MaxLease   Setting // longest lease that may be asked for
	MaxHold    Setting // age at which a grant ends, however often it was renewed
	Quarantine Setting // how long an expired permit stays out of circulation
	Idle       Setting // how long an unused semaphore is kept
}

// Create makes a semaphore, or confirms that it exists with the settings given.
type Create struct {
	Key      string
	Capacity int64
	Settings Settings
	MinToken int64 // 0: none. Later tokens are larger than this
	IfAbsent bool  // an existing semaphore is accepted whatever its settings
}

// Acquire asks for permits.
type Acquire struct {
	Key     string
	Holder  string
	Made    bool          // the holder id was made by the server: nobody else can know it
	Permits int64         // 1 or more
	Lease   time.Duration // 0: the semaphore's own or the default; Persist: never expires
	Wait    time.Duration // 0: now or not at all. Counted from the call of Backend.Do
	Create  bool          // make the semaphore, with Capacity, if there is none
	// Capacity is used only with Create.
	Capacity int64
	Label    string // shown in listings: the client's LABEL, or its name and address
	Fresh    bool   // a holder that holds already gets a new token and a new lease
}

// Release gives a holder's permits back.
type Release struct {
	Key, Holder string
	Token       int64 // 0: whichever it holds
}

// Renew sets the lease of a grant, counted from now.
type Renew struct {
	Key, Holder string
	Lease       time.Duration // 0: the length last given; Persist: never expires
	Token       int64         // 0: whichever it holds
}

// Cancel makes a holder's waiting request leave the line, answered with no permit.
type Cancel struct {
	Key, Holder string
}

// Check asks whether this very grant is live now.
type Check struct {
	Key, Holder string
	Token       int64
}

// Reconcile makes the books of a semaphore balance at once.
type Reconcile struct {
	Key string
	// Adopt takes over permits that were made by hand, with Capacity, where an engine can find them.
	Adopt    bool
	Capacity int64
}

// Resize changes the capacity, and the settings that are given.
type Resize struct {
	Key      string
	Capacity int64
	Settings Settings
}

// Inspect asks for the figures of one semaphore (SEM.INFO).
type Inspect struct {
	Key string
}

// Holders lists live grants, in an order that is stable while they last.
type Holders struct {
	Key    string
	Cursor uint64 // 0 starts
	Count  int    // 1 … MaxCount
}

// Waiters lists the line, in its order.
type Waiters struct {
	Key    string
	Cursor uint64 // 0 starts
	Count  int    // 1 … MaxCount
}

// Scan lists the names of all semaphores. One that exists throughout is seen exactly once.
type Scan struct {
	Cursor uint64 // 0 starts
	Count  int    // 1 … MaxCount
}

// Delete removes a semaphore. Its waiters are answered ErrNoSemaphore.
type Delete struct {
	Key   string
	Force bool // also while it is held
}

// Semaphore returns the key.
func (r Create) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Acquire) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Release) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Renew) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Cancel) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Check) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Reconcile) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Resize) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Inspect) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Holders) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r Waiters) Semaphore() string { return r.Key }

// Semaphore returns "": a scan is about all semaphores.
func (r Scan) Semaphore() string { return "" }

// Semaphore returns the key.
func (r Delete) Semaphore() string { return r.Key }
