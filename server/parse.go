package server

import (
	"crypto/rand"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// call is a request to the backend, and what its reply needs besides.
type call struct {
	command *command
	request semaphore.Request
	slots   bool  // the grant is answered with all its slots
	match   *glob // the keys to be shown; nil: all
	last    bool  // nothing may follow it in one run: it may wait, or its reply may be long
}

// stayOut keeps an Acquire out of the line.
func (c *call) stayOut() {
	if a, ok := c.request.(semaphore.Acquire); ok {
		a.Wait = 0
		c.request, c.last = a, false
	}
}

// rules are what a parser needs to know besides the arguments.
type rules struct {
	maxWait, maxLease time.Duration
	capacities        []capacityRule
	label             string // of the connection
}

type capacityRule struct {
	pattern  *glob
	capacity int64
}

// capacity returns what an unknown semaphore is created with when the client does not say.
func (r *rules) capacity(key string) (int64, bool) {
	for _, rule := range r.capacities {
		if rule.pattern.match(key) {
			return rule.capacity, true
		}
	}
	return 0, false
}

func (r *rules) lease(a *arguments) time.Duration {
	return a.capped("LEASE", time.Millisecond, r.maxLease, "--max-lease")
}

const acquireOptions options = 1<<optHolder | 1<<optPermits | 1<<optLease | 1<<optPersist | 1<<optWait |
	1<<optCapacity | 1<<optLabel | 1<<optFresh | 1<<optSlots

func parseAcquire(r *rules, a *arguments) call {
	q := semaphore.Acquire{Key: a.semaphore(), Permits: 1, Label: r.label}
	c := call{}
	for a.option(acquireOptions) {
		switch a.opt {
		case optHolder:
			q.Holder = a.name("HOLDER")
		case optPermits:
			q.Permits = a.number("PERMITS", 1, semaphore.MaxCapacity)
		case optLease:
			q.Lease = r.lease(a)
		case optPersist:
			q.Lease = semaphore.Persist
		case optWait:
			q.Wait = a.capped("WAIT", 0, r.maxWait, "--max-wait")
		case optCapacity:
			q.Capacity, q.Create = a.number("CAPACITY", 0, semaphore.MaxCapacity), true
		case optLabel:
			q.Label = a.text("LABEL")
		case optFresh:
			q.Fresh = true
		case optSlots:
			c.slots = true
		}
	}
	a.oneLease()
	if a.seen.has(optPersist) && !a.seen.has(optHolder) {
		a.fail("PERSIST needs a HOLDER: nobody could release the grant if its answer were lost")
	}
	if a.err == nil && q.Holder == "" {
		q.Holder, q.Made = rand.Text(), true
	}
	if !q.Create {
		q.Capacity, q.Create = r.capacity(q.Key)
	}
	c.request, c.last = q, q.Wait > 0
	return c
}

func parseCreate(r *rules, a *arguments) call {
	q := semaphore.Create{Key: a.semaphore(), Capacity: a.number("capacity", 0, semaphore.MaxCapacity)}
	for a.option(settingOptions | optionSet(optMinToken, optIfAbsent)) {
		switch a.opt {
		case optMinToken:
			q.MinToken = a.number("MINTOKEN", 0, semaphore.MaxMinToken)
		case optIfAbsent:
			q.IfAbsent = true
		default:
			readSetting(r, a, &q.Settings)
		}
	}
	return call{request: q}
}

func parseResize(r *rules, a *arguments) call {
	q := semaphore.Resize{Key: a.semaphore(), Capacity: a.number("capacity", 0, semaphore.MaxCapacity)}
	for a.option(settingOptions) {
		readSetting(r, a, &q.Settings)
	}
	return call{request: q}
}

const settingOptions options = 1<<optLease | 1<<optMaxLease | 1<<optMaxHold | 1<<optQuarantine | 1<<optIdle

// readSetting reads the value of the setting that a.opt names.
func readSetting(r *rules, a *arguments, s *semaphore.Settings) {
	switch a.opt {
	case optLease:
		s.Lease = semaphore.Set(r.lease(a))
	case optMaxLease:
		s.MaxLease = semaphore.Set(a.millis("MAXLEASE", time.Millisecond))
	case optMaxHold:
		s.MaxHold = semaphore.Set(a.millis("MAXHOLD", time.Millisecond))
	case optQuarantine:
		s.Quarantine = semaphore.Set(a.millis("QUARANTINE", 0))
	case optIdle:
		s.Idle = semaphore.Set(a.millis("IDLE", time.Millisecond))
	}
	if s.Lease.Given && s.MaxLease.Given && s.Lease.Value > s.MaxLease.Value {
		a.fail("LEASE is above MAXLEASE")
	}
}

func parseRelease(_ *rules, a *arguments) call {
	q := semaphore.Release{Key: a.semaphore(), Holder: a.name("holder")}
	for a.option(optionSet(optToken)) {
		q.Token = readToken(a, "TOKEN")
	}
	return call{request: q}
}

func parseRenew(r *rules, a *arguments) call {
	q := semaphore.Renew{Key: a.semaphore(), Holder: a.name("holder")}
	for a.option(optionSet(optLease, optPersist, optToken)) {
		switch a.opt {
		case optLease:
			q.Lease = r.lease(a)
		case optPersist:
			q.Lease = semaphore.Persist
		case optToken:
			q.Token = readToken(a, "TOKEN")
		}
	}
	a.oneLease()
	return call{request: q}
}

// readToken reads a token. 0 is none: taken as one it would mean "whichever", the opposite of what
// its sender wants.
func readToken(a *arguments, what string) int64 { return a.number(what, 1, semaphore.MaxCapacity) }

func parseCancel(_ *rules, a *arguments) call {
	return call{request: semaphore.Cancel{Key: a.semaphore(), Holder: a.name("holder")}}
}

func parseCheck(_ *rules, a *arguments) call {
	return call{request: semaphore.Check{Key: a.semaphore(), Holder: a.name("holder"), Token: readToken(a, "token")}}
}

func parseReconcile(_ *rules, a *arguments) call {
	q := semaphore.Reconcile{Key: a.semaphore()}
	for a.option(optionSet(optCapacity)) {
		q.Capacity, q.Adopt = a.number("CAPACITY", 0, semaphore.MaxCapacity), true
	}
	return call{request: q}
}

func parseInfo(_ *rules, a *arguments) call {
	return call{request: semaphore.Inspect{Key: a.semaphore()}}
}

func parseHolders(_ *rules, a *arguments) call {
	q := semaphore.Holders{Key: a.semaphore()}
	q.Cursor, q.Count = readPage(a)
	return call{request: q, last: true}
}

func parseWaiters(_ *rules, a *arguments) call {
	q := semaphore.Waiters{Key: a.semaphore()}
	q.Cursor, q.Count = readPage(a)
	return call{request: q, last: true}
}

// readPage reads which part of a listing is wanted.
func readPage(a *arguments) (cursor uint64, count int) {
	count = semaphore.DefaultCount
	for a.option(optionSet(optCursor, optCount)) {
		switch a.opt {
		case optCursor:
			cursor = a.cursor("CURSOR")
		case optCount:
			count = a.count()
		}
	}
	return cursor, count
}

func parseScan(_ *rules, a *arguments) call {
	q := semaphore.Scan{Cursor: a.cursor("cursor"), Count: semaphore.DefaultCount}
	c := call{last: true}
	for a.option(optionSet(optMatch, optCount)) {
		switch a.opt {
		case optMatch:
			c.match = compileGlob(a.text("MATCH"))
		case optCount:
			q.Count = a.count()
		}
	}
	c.request = q
	return c
}

func parseDelete(_ *rules, a *arguments) call {
	q := semaphore.Delete{Key: a.semaphore()}
	for a.option(optionSet(optForce)) {
		q.Force = true
	}
	return call{request: q}
}
