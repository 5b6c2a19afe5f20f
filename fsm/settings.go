package fsm

import (
	"fmt"
	"strings"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// settings are a semaphore's durations in microseconds; 0 where one is not in force.
type settings struct {
	lease, maxLease, maxHold, quarantine, idle int64
}

// persist, as the length of a lease, is for ever.
const persist = int64(never)

// shortest is the shortest lease.
const shortest = int64(time.Millisecond / time.Microsecond)

// asked converts a lease as asked for: 0 stays "not named".
func asked(lease time.Duration) int64 {
	if lease == semaphore.Persist {
		return persist
	}
	return micros(lease)
}

// admits refuses a lease that was asked for by name and is longer than this semaphore allows.
func (r *record) admits(lease time.Duration) *semaphore.Error {
	limit := r.settings.maxLease
	switch {
	case lease < 0 && lease != semaphore.Persist:
		return semaphore.Errorf(semaphore.CodeInvalid, "LEASE must not be negative")
	case lease == semaphore.Persist && limit > 0:
		return semaphore.Errorf(semaphore.CodeInvalid, "PERSIST is not possible on this semaphore: its MAXLEASE is %s ms", millis(limit))
	case lease == semaphore.Persist && r.settings.maxHold > 0:
		return semaphore.Errorf(semaphore.CodeInvalid, "PERSIST is not possible on this semaphore: its MAXHOLD is %s ms", millis(r.settings.maxHold))
	case limit > 0 && micros(lease) > limit:
		return semaphore.Errorf(semaphore.CodeInvalid, "LEASE %s is above this semaphore's MAXLEASE of %s ms", millis(micros(lease)), millis(limit))
	}
	return nil
}

// lease is the length of a lease: as asked for, else the semaphore's own, else the fallback. MAXLEASE
// cuts it.
func (r *record) lease(asked, fallback int64) int64 {
	switch {
	case asked > 0:
		return r.cut(asked)
	case r.settings.lease > 0:
		return r.cut(r.settings.lease)
	}
	return r.cut(max(fallback, shortest))
}

func (r *record) cut(length int64) int64 {
	if limit := r.settings.maxLease; limit > 0 {
		return min(length, limit)
	}
	return length
}

// leaseEnd is when a lease ends that is set now. MAXHOLD counts from the grant.
func (r *record) leaseEnd(granted, now Time, length int64) Time {
	end := now.plus(length)
	if limit := r.settings.maxHold; limit > 0 {
		return min(end, granted.plus(limit))
	}
	return end
}

// changed returns the settings with those given in their place, or why they contradict each other.
func (t settings) changed(given semaphore.Settings) (settings, *semaphore.Error) {
	for _, one := range []struct {
		name    string
		setting semaphore.Setting
		stored  *int64
	}{
		{"LEASE", given.Lease, &t.lease},
		{"MAXLEASE", given.MaxLease, &t.maxLease},
		{"MAXHOLD", given.MaxHold, &t.maxHold},
		{"QUARANTINE", given.Quarantine, &t.quarantine},
		{"IDLE", given.Idle, &t.idle},
	} {
		if !one.setting.Given {
			continue
		}
		if one.setting.Value < 0 || one.setting.Value > semaphore.MaxDuration {
			return t, semaphore.Errorf(semaphore.CodeInvalid, "%s is out of range", one.name)
		}
		*one.stored = micros(one.setting.Value)
	}
	if t.maxLease > 0 && t.lease > t.maxLease {
		return t, semaphore.Errorf(semaphore.CodeInvalid, "LEASE %s would be above MAXLEASE %s", millis(t.lease), millis(t.maxLease))
	}
	return t, nil
}

// vocabulary returns the settings in the terms of package semaphore.
func (t settings) vocabulary() semaphore.Settings {
	one := func(us int64) semaphore.Setting {
		if us == 0 {
			return semaphore.Setting{}
		}
		return semaphore.Set(duration(us))
	}
	return semaphore.Settings{
		Lease: one(t.lease), MaxLease: one(t.maxLease), MaxHold: one(t.maxHold),
		Quarantine: one(t.quarantine), Idle: one(t.idle),
	}
}

// String names the settings as on the wire.
func (t settings) String() string {
	var b strings.Builder
	for _, one := range []struct {
		name string
		us   int64
	}{
		{"LEASE", t.lease}, {"MAXLEASE", t.maxLease}, {"MAXHOLD", t.maxHold},
		{"QUARANTINE", t.quarantine}, {"IDLE", t.idle},
	} {
		if one.us > 0 {
			fmt.Fprintf(&b, " %s %s", one.name, millis(one.us))
		}
	}
	return b.String()
}

// millis writes microseconds as milliseconds, with a fraction only where there is one.
func millis(us int64) string {
	if us%1000 == 0 {
		return fmt.Sprint(us / 1000)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%03d", us/1000, us%1000), "0")
}

func capacityError(capacity int64) *semaphore.Error {
	if capacity < 0 || capacity > semaphore.MaxCapacity {
		return semaphore.Errorf(semaphore.CodeInvalid, "the capacity must be 0 to %d, not %d", int64(semaphore.MaxCapacity), capacity)
	}
	return nil
}
