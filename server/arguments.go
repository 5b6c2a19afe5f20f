package server

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// option is a word that may stand behind the fixed arguments of a command.
type option uint

const (
	optHolder option = iota
	optPermits
	optLease
	optPersist
	optWait
	optCapacity
	optLabel
	optFresh
	optSlots
	optToken
	optMaxLease
	optMaxHold
	optQuarantine
	optIdle
	optMinToken
	optIfAbsent
	optCursor
	optCount
	optMatch
	optForce
)

// maxWord is as long as the name of a command or an option may be.
const maxWord = 32

// lower returns a word in lower case, written into buf; nothing for one that is too long to be a name.
func lower(buf *[maxWord]byte, word []byte) []byte {
	if len(word) > len(buf) {
		return nil
	}
	for i, b := range word {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		buf[i] = b
	}
	return buf[:len(word)]
}

// optionOf returns the option that is written like this, in any case.
func optionOf(word []byte) (option, bool) {
	var buf [maxWord]byte
	word = lower(&buf, word)
	switch string(word) {
	case "holder":
		return optHolder, true
	case "permits":
		return optPermits, true
	case "lease":
		return optLease, true
	case "persist":
		return optPersist, true
	case "wait":
		return optWait, true
	case "capacity":
		return optCapacity, true
	case "label":
		return optLabel, true
	case "fresh":
		return optFresh, true
	case "slots":
		return optSlots, true
	case "token":
		return optToken, true
	}
	return settingOf(word)
}

// settingOf knows the rarer options.
func settingOf(word []byte) (option, bool) {
	switch string(word) {
	case "maxlease":
		return optMaxLease, true
	case "maxhold":
		return optMaxHold, true
	case "quarantine":
		return optQuarantine, true
	case "idle":
		return optIdle, true
	case "mintoken":
		return optMinToken, true
	case "ifabsent":
		return optIfAbsent, true
	case "cursor":
		return optCursor, true
	case "count":
		return optCount, true
	case "match":
		return optMatch, true
	case "force":
		return optForce, true
	}
	return 0, false
}

// options is a set of them.
type options uint32

func optionSet(all ...option) options {
	var s options
	for _, o := range all {
		s |= 1 << o
	}
	return s
}

func (s options) has(o option) bool { return s&(1<<o) != 0 }

// arguments reads the arguments of a command from left to right. The first mistake is kept; reading
// on behind it yields zero values, so that parsers check for it once, at their end.
type arguments struct {
	rest [][]byte
	opt  option  // the option that was read last
	seen options // all that were read
	err  *semaphore.Error

	key string // that was read last, by an earlier command
}

// option reads the next option, one of those allowed, into opt. It returns false at the end and
// behind a mistake.
func (a *arguments) option(allowed options) bool {
	if a.err != nil || len(a.rest) == 0 {
		return false
	}
	word := a.take()
	o, known := optionOf(word)
	if !known || !allowed.has(o) {
		return a.fail("unknown option '%s'", printable(word))
	}
	if a.seen.has(o) {
		return a.fail("%s is given twice", strings.ToUpper(string(word)))
	}
	a.opt, a.seen = o, a.seen|1<<o
	return true
}

// fail keeps the first mistake; it returns false for the convenience of option.
func (a *arguments) fail(format string, args ...any) bool {
	if a.err == nil {
		a.err = semaphore.Errorf(semaphore.CodeInvalid, format, args...)
	}
	return false
}

// oneLease refuses two leases that contradict each other.
func (a *arguments) oneLease() {
	if a.seen.has(optLease) && a.seen.has(optPersist) {
		a.fail("LEASE and PERSIST exclude each other")
	}
}

func (a *arguments) take() []byte {
	word := a.rest[0]
	a.rest = a.rest[1:]
	return word
}

// value reads any argument.
func (a *arguments) value(what string) []byte {
	if a.err != nil {
		return nil
	}
	if len(a.rest) == 0 {
		a.fail("%s needs a value", what)
		return nil
	}
	return a.take()
}

// name reads the name of something: 1 to semaphore.MaxName bytes.
func (a *arguments) name(what string) string {
	v := a.text(what)
	if a.err == nil && v == "" {
		a.fail("%s is empty", what)
	}
	return v
}

// text reads at most semaphore.MaxName bytes.
func (a *arguments) text(what string) string {
	v := a.value(what)
	if len(v) > semaphore.MaxName {
		a.fail("%s is longer than %d bytes", what, semaphore.MaxName)
		return ""
	}
	return string(v)
}

// semaphore reads the name of a semaphore. A client mostly stays with one: its name is made once.
func (a *arguments) semaphore() string {
	if len(a.rest) > 0 && string(a.rest[0]) == a.key && a.key != "" {
		a.take()
		return a.key
	}
	a.key = a.name("key")
	return a.key
}

// number reads a number from low to high.
func (a *arguments) number(what string, low, high int64) int64 {
	v := a.value(what)
	if a.err != nil {
		return 0
	}
	n, ok := digits(v)
	if !ok || n > uint64(high) || int64(n) < low {
		a.fail("%s must be a whole number from %d to %d", what, low, high)
		return 0
	}
	return int64(n)
}

// millis reads a duration from low to semaphore.MaxDuration.
func (a *arguments) millis(what string, low time.Duration) time.Duration {
	return a.span(what, low, semaphore.MaxDuration, "")
}

// capped reads a duration that a flag of the server limits.
func (a *arguments) capped(what string, low, high time.Duration, flag string) time.Duration {
	return a.span(what, low, min(high, semaphore.MaxDuration), ", the server's "+flag)
}

// span reads a duration from low to high; whence says who has set that.
func (a *arguments) span(what string, low, high time.Duration, whence string) time.Duration {
	v := a.value(what)
	if a.err != nil {
		return 0
	}
	n, ok := digits(v)
	if !ok || n > uint64(high.Milliseconds()) || int64(n) < low.Milliseconds() {
		a.fail("%s must be a whole number of milliseconds from %d to %d%s", what, low.Milliseconds(), high.Milliseconds(), whence)
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// cursor reads where a listing goes on.
func (a *arguments) cursor(what string) uint64 {
	v := a.value(what)
	if a.err != nil {
		return 0
	}
	n, ok := digits(v)
	if !ok {
		a.fail("%s must be a cursor that this command returned, or 0", what)
	}
	return n
}

// count reads the size of a page; a large one is cut.
func (a *arguments) count() int {
	return int(min(a.number("COUNT", 1, 1<<62), semaphore.MaxCount))
}

// digits reads a number that is written in digits alone: no sign, no blank, no exponent.
func digits(v []byte) (uint64, bool) {
	const tenth = math.MaxUint64 / 10
	var n uint64
	for _, c := range v {
		d := uint64(c - '0')
		if d > 9 || n > tenth || 10*n > math.MaxUint64-d {
			return 0, false
		}
		n = 10*n + d
	}
	return n, len(v) > 0
}

// printable makes bytes from a client fit for an error message.
func printable(b []byte) string {
	const longest = 128
	cut := ""
	if len(b) > longest {
		b, cut = b[:longest], "…"
	}
	q := strconv.Quote(string(b))
	return q[1:len(q)-1] + cut
}
