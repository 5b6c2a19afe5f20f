package script

import (
	"fmt"
	"strings"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// What a script says of a request.
const (
	codeNo int64 = iota
	codeYes
	codeGrant
	codeReplay
	codeJoins
	codeNumber
	// Refusals, each with two numbers.
	codeNoSemaphore
	codeConflict    // the permits that the holder has, and their token
	codeTooMany     // the capacity
	codeMaxLease    // MAXLEASE is below the lease asked for
	codeNoPersist   // MAXLEASE is set
	codeHeldTooLong // MAXHOLD is set, and PERSIST asked for
	codePermits     // above what this mode can do
	codeCapacity    // above what this mode can do
	codeSemaphores  // how many there are, and may be
	codeNoMemory
	codeInUse
	codeExists   // the capacity; the settings follow
	codeSettings // LEASE would be above MAXLEASE
)

// asked is what a refusal names of the request.
type asked struct {
	permits int64
	lease   time.Duration
}

func (r *reply) refusal(code int64, q asked) error {
	a, b := r.number(), r.number()
	invalid := func(format string, args ...any) error {
		return semaphore.Errorf(semaphore.CodeInvalid, format, args...)
	}
	switch code {
	case codeNoSemaphore:
		return semaphore.ErrNoSemaphore
	case codeInUse:
		return semaphore.ErrInUse
	case codeConflict:
		return semaphore.Errorf(semaphore.CodeConflict,
			"this holder has %d permits under token %d; it cannot ask for %d beside them", a, b, q.permits)
	case codeTooMany:
		return semaphore.Errorf(semaphore.CodeTooMany, "%d permits asked for, and the capacity is %d", q.permits, a)
	case codeMaxLease:
		return invalid("LEASE %d is above this semaphore's MAXLEASE of %d ms", millis(q.lease), a)
	case codeNoPersist:
		return invalid("PERSIST is not possible on this semaphore: its MAXLEASE is %d ms", a)
	case codeHeldTooLong:
		return invalid("PERSIST is not possible on this semaphore: its MAXHOLD is %d ms", a)
	case codePermits:
		return invalid("PERMITS must be 1 to %d in Redis mode, not %d", MaxPermits, q.permits)
	case codeCapacity:
		return invalid("the capacity must be 0 to %d in Redis mode, not %d", MaxCapacity, a)
	case codeSemaphores:
		return invalid("there are %d semaphores, and --max-semaphores is %d", a, b)
	case codeNoMemory:
		return semaphore.Errorf(semaphore.CodeBackend, "OOM Redis has no memory left; nothing was done")
	case codeExists:
		return semaphore.Errorf(semaphore.CodeConflict, "this semaphore exists with CAPACITY %d%s", a, named(r.settings()))
	case codeSettings:
		return invalid("LEASE %d would be above MAXLEASE %d", a, b)
	}
	return fmt.Errorf("read a script's reply: %d is no code", code)
}

// settings reads a semaphore's settings, each in milliseconds, 0 where it is not in force.
func (r *reply) settings() semaphore.Settings {
	one := func() semaphore.Setting {
		ms := r.number()
		if ms <= 0 {
			return semaphore.Setting{}
		}
		return semaphore.Set(time.Duration(ms) * time.Millisecond)
	}
	return semaphore.Settings{Lease: one(), MaxLease: one(), MaxHold: one(), Quarantine: one(), Idle: one()}
}

// named writes settings as on the wire.
func named(s semaphore.Settings) string {
	var b strings.Builder
	for _, one := range []struct {
		name    string
		setting semaphore.Setting
	}{
		{"LEASE", s.Lease}, {"MAXLEASE", s.MaxLease}, {"MAXHOLD", s.MaxHold},
		{"QUARANTINE", s.Quarantine}, {"IDLE", s.Idle},
	} {
		if one.setting.Given {
			fmt.Fprintf(&b, " %s %d", one.name, millis(one.setting.Value))
		}
	}
	return b.String()
}
