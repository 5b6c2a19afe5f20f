package server

import (
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

// optionOf returns the option that is written like this, in any case.
func optionOf(word []byte) (option, bool) {
	switch strings.ToUpper(string(word)) {
	case "HOLDER":
		return optHolder, true
	case "PERMITS":
		return optPermits, true
	case "LEASE":
		return optLease, true
	case "PERSIST":
		return optPersist, true
	case "WAIT":
		return optWait, true
	case "CAPACITY":
		return optCapacity, true
	case "LABEL":
		return optLabel, true
	case "FRESH":
		return optFresh, true
	case "SLOTS":
		return optSlots, true
	case "TOKEN":
		return optToken, true
	}
	return settingOf(word)
}

// settingOf knows the rarer options.
func settingOf(word []byte) (option, bool) {
	switch strings.ToUpper(string(word)) {
	case "MAXLEASE":
		return optMaxLease, true
	case "MAXHOLD":
		return optMaxHold, true
	case "QUARANTINE":
		return optQuarantine, true
	case "IDLE":
		return optIdle, true
	case "MINTOKEN":
		return optMinToken, true
	case "IFABSENT":
		return optIfAbsent, true
	case "CURSOR":
		return optCursor, true
	case "COUNT":
		return optCount, true
	case "MATCH":
		return optMatch, true
	case "FORCE":
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
	v := a.value(what)
	if a.err != nil {
		return 0
	}
	n, ok := digits(v)
	high := semaphore.MaxDuration.Milliseconds()
	if !ok || n > uint64(high) || int64(n) < low.Milliseconds() {
		a.fail("%s must be a whole number of milliseconds from %d to %d", what, low.Milliseconds(), high)
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// capped reads a duration that a flag of the server limits.
func (a *arguments) capped(what string, low, high time.Duration, flag string) time.Duration {
	d := a.millis(what, low)
	if d > high {
		a.fail("%s is above %s, which is %d ms", what, flag, high.Milliseconds())
		return 0
	}
	return d
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
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	return n, err == nil
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
