package check

import (
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

const second = time.Second

// limit is far beyond what these searches need.
const limit = time.Minute

func testSetup() Setup {
	return Setup{
		Capacity: map[string]int64{"one": 1, "two": 2},
		Hold:     5 * second, Grace: 5 * second, Slack: second / 2,
	}
}

// at is an operation within these milliseconds; each has a client of its own.
func at(from, to int, o history.Op) history.Op {
	o.Call, o.Return = time.Duration(from)*time.Millisecond, time.Duration(to)*time.Millisecond
	o.Client = from
	if o.Key == "" {
		o.Key = "one"
	}
	return o
}

// acquire asks for one permit for two seconds.
func acquire(holder string) history.Op {
	return history.Op{Kind: history.Acquire, Holder: holder, Permits: 1, Lease: 2 * second, Result: history.Result{Outcome: history.Null}}
}

func (o op) grants(token, slot int64) history.Op {
	o.Result = history.Result{Outcome: history.Done, Grant: history.Grant{Holder: o.Holder, Token: token, Slots: []int64{slot}, Lease: o.Lease}}
	return history.Op(o)
}

// op lets test operations be written as sentences.
type op history.Op

func get(holder string, token, slot int64) history.Op { return op(acquire(holder)).grants(token, slot) }

func again(holder string, token, slot int64, left time.Duration) history.Op {
	o := get(holder, token, slot)
	o.Result.Grant.Replayed, o.Result.Grant.Lease = true, left
	return o
}

func waits(o history.Op, d time.Duration) history.Op { o.Wait = d; return o }

func inTwo(o history.Op) history.Op { o.Key = "two"; return o }

func lost(o history.Op) history.Op {
	o.Result = history.Result{Outcome: history.Unknown, Code: history.Broken}
	return o
}

func refused(o history.Op, code string) history.Op {
	o.Result = history.Result{Outcome: history.Refused, Code: code}
	return o
}

func number(kind history.Kind, holder string, token, n int64) history.Op {
	return history.Op{Kind: kind, Holder: holder, Token: token, Result: history.Result{Outcome: history.Done, Number: n}}
}

func release(holder string, token, n int64) history.Op {
	return number(history.Release, holder, token, n)
}

func check(holder string, token, n int64) history.Op { return number(history.Check, holder, token, n) }

func renew(holder string, token int64, lease time.Duration) history.Op {
	o := number(history.Renew, holder, token, lease.Milliseconds())
	o.Lease = lease
	return o
}

func line(holders ...string) history.Op {
	return history.Op{Kind: history.Waiters, Result: history.Result{Outcome: history.Done, Line: holders}}
}

func books(inUse int64) history.Op {
	return history.Op{Kind: history.Count, Result: history.Result{Outcome: history.Done, Books: history.Books{Capacity: 1, InUse: inUse, Available: 1 - inUse}}}
}

// shorter is an answer that was given although a longer lease was asked for.
func shorter(o history.Op) history.Op { o.Lease *= 2; return o }

func refusedHolder(holder string) history.Op { return refused(acquire(holder), "CLUSTERDOWN") }

// busy is proof of a leader all the time.
func busy(key string, until int) []history.Op {
	var ops []history.Op
	for ms := 0; ms < until; ms += 100 {
		o := check("nobody", 99, 0)
		o.Key = key
		ops = append(ops, at(ms, ms+1, o))
	}
	return ops
}

func silent(holder string) history.Op {
	o := lost(acquire(holder))
	o.Result.Code = history.Silent
	return o
}

func recorded(ops []history.Op) history.Log {
	r := history.NewRecorder()
	for _, o := range ops {
		r.Add(o)
	}
	return r.Log()
}
