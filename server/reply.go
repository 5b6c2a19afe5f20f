package server

import (
	"errors"
	"time"

	"github.com/semserver/semserver/semaphore"
	"github.com/tidwall/redcon"
)

// answer writes the reply to a call. Every reply of a backend passes through here.
func (o *output) answer(c *call, r semaphore.Reply) {
	if r.Err != nil {
		o.fail(asError(r.Err))
		return
	}
	switch v := r.Value.(type) {
	case nil:
		o.nothing(c.request)
	case semaphore.Number:
		o.number(int64(v))
	case *semaphore.Grant:
		o.grant(c, v)
	case semaphore.Usage:
		o.array(3)
		o.number(v.Capacity)
		o.number(v.InUse)
		o.number(v.Available)
	case *semaphore.Info:
		o.info(v)
	case *semaphore.HolderPage:
		o.holders(v)
	case *semaphore.WaiterPage:
		o.waiters(v)
	case *semaphore.KeyPage:
		o.keys(c.match, v)
	default:
		o.fail(semaphore.Errorf(semaphore.CodeInvalid, "internal error: a reply of type %T", v))
	}
}

// asError turns any error into one that has a code. An error without one comes from a defect, and
// nothing is known about its outcome.
func asError(err error) *semaphore.Error {
	var e *semaphore.Error
	if errors.As(err, &e) {
		return e
	}
	return semaphore.Errorf(semaphore.CodeUncertain, "internal error: %v", err)
}

// nothing writes the reply without a value: no permit for an Acquire, done for the rest.
func (o *output) nothing(r semaphore.Request) {
	if _, ok := r.(semaphore.Acquire); ok {
		o.buf = append(o.room(), o.noGrant()...)
		return
	}
	o.ok()
}

// grant writes a grant and remembers where, unless the holder had it before: then it is not ours to
// give back.
func (o *output) grant(c *call, g *semaphore.Grant) {
	from := o.len()
	n := 5
	if c.slots {
		n = 6
	}
	b := redcon.AppendArray(o.room(), n)
	b = redcon.AppendBulkString(b, g.Holder)
	b = redcon.AppendInt(b, g.Token)
	b = redcon.AppendInt(b, g.Slot())
	b = redcon.AppendInt(b, remaining(g.Lease))
	o.buf = redcon.AppendInt(b, truth(g.Replayed))
	if c.slots {
		o.array(len(g.Slots))
		for _, s := range g.Slots {
			o.array(2)
			o.number(s.First)
			o.number(s.Last)
		}
	}
	if !g.Replayed {
		o.grants = append(o.grants, unsaid{from, o.len(), o.noGrant(), c.request.Semaphore(), g})
	}
}

func (o *output) info(i *semaphore.Info) {
	fields := []struct {
		name  string
		value int64
	}{
		{"capacity", i.Capacity},
		{"in_use", i.InUse},
		{"available", i.Available},
		{"excess", i.Excess},
		{"quarantined", i.Quarantined},
		{"missing", i.Missing},
		{"surplus", i.Surplus},
		{"rows", i.Rows},
		{"holders", i.Holders},
		{"waiters", i.Waiters},
		{"orphans", i.Orphans},
		{"oldest_wait_ms", i.OldestWait.Milliseconds()},
		{"next_expiry_ms", setting(i.NextExpiry)},
		{"last_token", i.LastToken},
		{"lease", setting(i.Settings.Lease)},
		{"maxlease", setting(i.Settings.MaxLease)},
		{"maxhold", setting(i.Settings.MaxHold)},
		{"quarantine", setting(i.Settings.Quarantine)},
		{"idle", setting(i.Settings.Idle)},
		{"grants_immediate", i.Counters.GrantsImmediate},
		{"grants_waited", i.Counters.GrantsWaited},
		{"refused", i.Counters.Refused},
		{"wait_timeouts", i.Counters.WaitTimeouts},
		{"wait_ms_total", i.Counters.WaitTotal.Milliseconds()},
		{"releases", i.Counters.Releases},
		{"renewals", i.Counters.Renewals},
		{"expirations", i.Counters.Expirations},
		{"reconciled", i.Counters.Reconciled},
		{"held_ms_total", i.Counters.HeldTotal.Milliseconds()},
	}
	o.mapping(1 + len(fields))
	o.bulk("name")
	o.bulk(i.Name)
	for _, f := range fields {
		o.bulk(f.name)
		o.number(f.value)
	}
}

func (o *output) holders(p *semaphore.HolderPage) {
	o.array(2)
	o.digits(p.Next)
	o.array(len(p.Rows))
	for _, r := range p.Rows {
		o.array(7)
		o.bulk(r.Holder)
		o.number(r.Token)
		o.number(r.Slot)
		o.number(r.Permits)
		o.number(remaining(r.Remaining))
		o.number(r.Held.Milliseconds())
		o.bulk(r.Client)
	}
}

func (o *output) waiters(p *semaphore.WaiterPage) {
	o.array(2)
	o.digits(p.Next)
	o.array(len(p.Rows))
	for _, r := range p.Rows {
		o.array(5)
		o.bulk(r.Holder)
		o.number(r.Permits)
		o.number(r.Waited.Milliseconds())
		o.number(r.Remaining.Milliseconds())
		o.bulk(r.Client)
	}
}

func (o *output) keys(match *glob, p *semaphore.KeyPage) {
	keys := p.Keys
	if match != nil {
		keys = nil
		for _, k := range p.Keys {
			if match.match(k) {
				keys = append(keys, k)
			}
		}
	}
	o.array(2)
	o.digits(p.Next)
	o.array(len(keys))
	for _, k := range keys {
		o.bulk(k)
	}
}

// remaining is what is left of a live lease, in ms: rounded down, so that no client trusts it too
// long, but never 0, which would say that it has ended.
func remaining(d time.Duration) int64 {
	if d == semaphore.Persist {
		return -1
	}
	return max(1, d.Milliseconds())
}

// setting is a duration in ms, -1 where it is absent.
func setting(s semaphore.Setting) int64 {
	if !s.Given {
		return -1
	}
	return s.Value.Milliseconds()
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
