package client

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// Option says something about one Acquire. The server's limits apply; a value that makes no sense is
// an error of Acquire.
type Option func(*request)

// Capacity makes the semaphore with so many permits if there is none. An existing one keeps the
// capacity that it has.
func Capacity(n int64) Option { return func(r *request) { r.capacity, r.create = n, true } }

// Permits asks for so many at once: all or nothing. Without it: one.
func Permits(n int64) Option { return func(r *request) { r.permits = n } }

// Wait stands in line for so long. Without it: now or ErrNoPermit. While servers do not answer, it may
// take Config.Patience longer.
func Wait(d time.Duration) Option { return func(r *request) { r.wait = d } }

// Lease is how long the permit lasts at the server unless it is renewed, MinLease or more; so long does
// it take until others get it after this process has died. Without it: what the semaphore or the
// server has as default.
func Lease(d time.Duration) Option { return func(r *request) { r.lease, r.leased = d, true } }

// Persist asks for a permit that never expires and is not renewed: it is held until somebody releases
// it, however this process ends.
func Persist() Option { return func(r *request) { r.persist = true } }

// Holder is the id to hold under, in place of one that is made for this Acquire alone. Whoever holds
// under this id already gets the same permit again, and shares it.
func Holder(id string) Option { return func(r *request) { r.holder, r.named = id, true } }

// HolderPrefix makes the id that is made for this Acquire alone begin so, for people to recognise.
func HolderPrefix(text string) Option { return func(r *request) { r.prefix = text } }

// Fresh fences off whoever holds under the same Holder: the permit moves to this caller with a new token
// and a new lease.
func Fresh() Option { return func(r *request) { r.fresh = true } }

// Label is shown in listings of holders and waiters.
func Label(text string) Option { return func(r *request) { r.label = text } }

// Announce calls f from Acquire, before anything is sent, with the id under which it will wait and hold:
// by that it can be found in SEM.WAITERS.
func Announce(f func(holder string)) Option { return func(r *request) { r.announce = f } }

// Unavailable is what becomes of an Acquire when no server can be reached.
type Unavailable int

// Whether work goes on without its guard.
const (
	FailClosed Unavailable = iota // Acquire ends with ErrUnavailable
	FailOpen                      // Acquire returns a permit that is not Guarded
)

// WhenUnavailable says what is worse: not to work, or to work without the semaphore. Without it:
// FailClosed. A permit that was got before is lost with its lease in either case.
func WhenUnavailable(u Unavailable) Option { return func(r *request) { r.unavailable = u } }

// request is an Acquire, complete and checked.
type request struct {
	name, holder   string
	named          bool // the caller chose the holder; others may know it
	prefix         string
	permits        int64
	capacity       int64
	create         bool
	wait, lease    time.Duration
	leased         bool
	persist, fresh bool
	label          string
	unavailable    Unavailable
	announce       func(holder string)
}

func newRequest(name string, options []Option) (*request, error) {
	r := &request{name: name, permits: 1}
	for _, o := range options {
		if o != nil {
			o(r)
		}
	}
	if !r.named {
		r.holder = r.prefix + rand.Text()
	}
	return r, r.check()
}

// check refuses what the server would not understand, or would understand as something else.
func (r *request) check() error {
	switch {
	case r.name == "" || len(r.name) > semaphore.MaxName:
		return fmt.Errorf("the name of a semaphore has 1 to %d bytes, not %d", semaphore.MaxName, len(r.name))
	case r.holder == "" || len(r.holder) > semaphore.MaxName:
		return fmt.Errorf("a holder has 1 to %d bytes, not %d", semaphore.MaxName, len(r.holder))
	case len(r.label) > semaphore.MaxName:
		return fmt.Errorf("a label has at most %d bytes, not %d", semaphore.MaxName, len(r.label))
	case r.permits < 1 || r.permits > semaphore.MaxCapacity:
		return fmt.Errorf("permits: %d is not 1 to %d", r.permits, int64(semaphore.MaxCapacity))
	case r.create && (r.capacity < 0 || r.capacity > semaphore.MaxCapacity):
		return fmt.Errorf("capacity: %d is not 0 to %d", r.capacity, int64(semaphore.MaxCapacity))
	case r.wait < 0:
		return fmt.Errorf("wait: %v is less than nothing", r.wait)
	case r.leased && r.lease < MinLease:
		return fmt.Errorf("lease: %v is shorter than %v, which leaves no time to renew it", r.lease, MinLease)
	case r.fresh && !r.named:
		return fmt.Errorf("fresh: it is for a holder that is named, whose other processes it fences off")
	case r.leased && r.persist:
		return fmt.Errorf("lease: a permit that never expires has none")
	case r.unavailable != FailClosed && r.unavailable != FailOpen:
		return fmt.Errorf("when unavailable: there is no %d", r.unavailable)
	}
	return nil
}

// command is the SEM.ACQUIRE of this request, with what is left of its wait.
func (r *request) command(wait time.Duration) []any {
	args := []any{"SEM.ACQUIRE", r.name, "HOLDER", r.holder}
	if r.permits > 1 {
		args = append(args, "PERMITS", r.permits, "SLOTS")
	}
	args = append(args, r.leaseArgs()...)
	if wait > 0 {
		args = append(args, "WAIT", roundUp(wait))
	}
	if r.create {
		args = append(args, "CAPACITY", r.capacity)
	}
	if r.label != "" {
		args = append(args, "LABEL", r.label)
	}
	if r.fresh {
		args = append(args, "FRESH")
	}
	return args
}

// leaseArgs are the same in ACQUIRE and RENEW.
func (r *request) leaseArgs() []any {
	switch {
	case r.persist:
		return []any{"PERSIST"}
	case r.leased:
		return []any{"LEASE", r.lease.Milliseconds()}
	default:
		return nil
	}
}

// roundUp is a wait in milliseconds. One that is shorter than that is still a wait.
func roundUp(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}
