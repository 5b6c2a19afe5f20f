package fsm

import (
	"encoding/binary"
	"fmt"

	"github.com/semserver/semserver/semaphore"
)

// Leave makes one request leave the line; its waiter is answered with no permit. A node sends it for
// a client that is gone. It is answered 1, or 0 where that ticket does not stand there.
type Leave struct {
	Key, Holder string
	Ticket      semaphore.Ticket
}

// GiveBack undoes a grant that was never told to its client. It is answered 1, or 0 where that grant
// is not live or was replayed or renewed meanwhile.
type GiveBack struct {
	Key, Holder string
	Token       int64
	Ticket      semaphore.Ticket
}

// Rejoin is an Acquire that a node repeats for a client that waits, because its waiters were made
// orphans, or because it cannot tell how the wait ended. The client gets back its place, or the grant
// that came of it; it is told that it was superseded where another request stands in its place, and that
// the outcome is not known where there is neither.
type Rejoin struct {
	semaphore.Acquire
	Old semaphore.Ticket // of the request that it repeats; zero: any of the same node
}

// Semaphore returns the key.
func (r Leave) Semaphore() string { return r.Key }

// Semaphore returns the key.
func (r GiveBack) Semaphore() string { return r.Key }

// The kinds of requests, as encoded. A kind is never given another meaning.
const (
	kindCreate    = 1
	kindAcquire   = 2
	kindRelease   = 3
	kindRenew     = 4
	kindCancel    = 5
	kindCheck     = 6
	kindReconcile = 7
	kindResize    = 8
	kindInspect   = 9
	kindHolders   = 10
	kindWaiters   = 11
	kindScan      = 12
	kindDelete    = 13
	kindLeave     = 14
	kindGiveBack  = 15
	kindRejoin    = 16
)

// The flags of a request, and the settings that are given.
const (
	flagMade   = 1
	flagCreate = 2
	flagFresh  = 4

	givenLease      = 1
	givenMaxLease   = 2
	givenMaxHold    = 4
	givenQuarantine = 8
	givenIdle       = 16
)

// AppendRequest appends the encoding of one request: its kind (u8) and its fields in the order in
// which package semaphore declares them, truths gathered in one byte of flags behind the texts. It
// may be called from any goroutine. A request of an unknown type is a bug of the caller: it panics.
func AppendRequest(dst []byte, r semaphore.Request) []byte {
	switch r := r.(type) {
	case semaphore.Acquire:
		return appendAcquire(append(dst, kindAcquire), &r)
	case semaphore.Release:
		dst = appendText(appendText(append(dst, kindRelease), r.Key), r.Holder)
		return binary.AppendVarint(dst, r.Token)
	case semaphore.Renew:
		dst = appendText(appendText(append(dst, kindRenew), r.Key), r.Holder)
		return binary.AppendVarint(binary.AppendVarint(dst, int64(r.Lease)), r.Token)
	case semaphore.Cancel:
		return appendText(appendText(append(dst, kindCancel), r.Key), r.Holder)
	case semaphore.Check:
		dst = appendText(appendText(append(dst, kindCheck), r.Key), r.Holder)
		return binary.AppendVarint(dst, r.Token)
	case Leave:
		dst = appendText(appendText(append(dst, kindLeave), r.Key), r.Holder)
		return appendTicket(dst, r.Ticket)
	case GiveBack:
		dst = appendText(appendText(append(dst, kindGiveBack), r.Key), r.Holder)
		return appendTicket(binary.AppendVarint(dst, r.Token), r.Ticket)
	case Rejoin:
		return appendTicket(appendAcquire(append(dst, kindRejoin), &r.Acquire), r.Old)
	}
	return appendCare(dst, r)
}

// appendCare appends the requests of operators: what makes, changes, lists and removes semaphores.
func appendCare(dst []byte, r semaphore.Request) []byte {
	switch r := r.(type) {
	case semaphore.Create:
		dst = binary.AppendVarint(appendText(append(dst, kindCreate), r.Key), r.Capacity)
		dst = appendSettings(dst, r.Settings)
		return appendTruth(binary.AppendVarint(dst, r.MinToken), r.IfAbsent)
	case semaphore.Resize:
		dst = binary.AppendVarint(appendText(append(dst, kindResize), r.Key), r.Capacity)
		return appendSettings(dst, r.Settings)
	case semaphore.Reconcile:
		dst = appendTruth(appendText(append(dst, kindReconcile), r.Key), r.Adopt)
		return binary.AppendVarint(dst, r.Capacity)
	case semaphore.Delete:
		return appendTruth(appendText(append(dst, kindDelete), r.Key), r.Force)
	case semaphore.Inspect:
		return appendText(append(dst, kindInspect), r.Key)
	case semaphore.Holders:
		return appendPage(appendText(append(dst, kindHolders), r.Key), r.Cursor, r.Count)
	case semaphore.Waiters:
		return appendPage(appendText(append(dst, kindWaiters), r.Key), r.Cursor, r.Count)
	case semaphore.Scan:
		return appendPage(append(dst, kindScan), r.Cursor, r.Count)
	}
	panic(fmt.Sprintf("fsm: request of unknown type %T", r))
}

func appendAcquire(dst []byte, r *semaphore.Acquire) []byte {
	dst = appendText(appendText(dst, r.Key), r.Holder)
	dst = appendText(dst, r.Label)
	var flags byte
	if r.Made {
		flags |= flagMade
	}
	if r.Create {
		flags |= flagCreate
	}
	if r.Fresh {
		flags |= flagFresh
	}
	dst = append(dst, flags)
	dst = binary.AppendVarint(dst, r.Permits)
	dst = binary.AppendVarint(dst, int64(r.Lease))
	dst = binary.AppendVarint(dst, int64(r.Wait))
	return binary.AppendVarint(dst, r.Capacity)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTruth(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendTicket(dst []byte, t semaphore.Ticket) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, t.Incarnation), t.Number)
}

func appendPage(dst []byte, cursor uint64, count int) []byte {
	return binary.AppendVarint(binary.AppendUvarint(dst, cursor), int64(count))
}

// settingFlags pairs the settings with their flags, in the order of their encoding.
func settingFlags(s *semaphore.Settings) [5]struct {
	setting *semaphore.Setting
	flag    byte
} {
	return [...]struct {
		setting *semaphore.Setting
		flag    byte
	}{
		{&s.Lease, givenLease},
		{&s.MaxLease, givenMaxLease},
		{&s.MaxHold, givenMaxHold},
		{&s.Quarantine, givenQuarantine},
		{&s.Idle, givenIdle},
	}
}

// appendSettings appends which settings are given (u8), and those.
func appendSettings(dst []byte, s semaphore.Settings) []byte {
	flags := len(dst)
	dst = append(dst, 0)
	for _, one := range settingFlags(&s) {
		if one.setting.Given {
			dst[flags] |= one.flag
			dst = binary.AppendVarint(dst, int64(one.setting.Value))
		}
	}
	return dst
}
