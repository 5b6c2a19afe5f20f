package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// What this mode can do at most.
const (
	MaxCapacity = 100_000
	MaxPermits  = 1_000
	// MaxStep is the most ops and candidates of one step together.
	MaxStep = 1_000
)

// Step is what one call does for requests on one semaphore that share calls, in their order.
//
// The candidates come before the ops: what is free, and what an op frees, goes to them in their order,
// up to the first for whom it does not suffice. While one of them is left, or somebody is behind them,
// or a waiter of another server is older, no op is granted what its holder does not hold already.
type Step struct {
	Ops        []Op
	Candidates []Candidate
	Behind     bool          // others wait at this server behind the candidates
	Head       int64         // when the first who waits at this server joined the line, by Redis's clock in milliseconds; 0: nobody waits
	Timeouts   int64         // waits that ended without a grant since the last call that took effect
	Waited     time.Duration // how long those took
	Caught     int64         // permits that this server took from the List as those do who work by hand. They are put back, as far as the books lack some, before anything else
	Limits     semaphore.Limits
}

// Op is one request, under the ticket by which it is known again: an Acquire, Release, Renew, Check or
// GiveBack.
type Op struct {
	Request semaphore.Request
	Ticket  semaphore.Ticket
	Again   bool // it was sent before, in a call whose reply was lost
}

// Candidate is a waiter to whom permits may be handed over.
type Candidate struct {
	Acquire *semaphore.Acquire
	Ticket  semaphore.Ticket
	Waited  time.Duration
	Arrival int64 // when it joined the line, by Redis's clock in milliseconds
}

// Outcome is what became of a step.
type Outcome struct {
	Now      int64             // Redis's clock, in milliseconds
	Capacity int64             // afterwards
	Ops      []Result          // one for each op
	Served   []semaphore.Reply // for the first candidates: a *semaphore.Grant, or an error
	NextEnd  time.Duration     // until permits fall free by themselves, if somebody waits here; negative: not at all, or nobody waits
	Free     int64             // permits that the line here may have now
	More     bool              // there is more to be done at once than one call does
	Raw      bool              // somebody waits here, and others work on the semaphore by hand
	Ended    int64             // leases that were found to have ended
	Gone     bool              // there is no such semaphore
	Token    int64             // the latest token of the semaphore
}

// Result is the reply to one op. Joins says that it got nothing and may stand in line.
type Result struct {
	semaphore.Reply
	Joins bool
}

// Kinds of ops, as serve.lua knows them.
const (
	opAcquire byte = iota + 1
	opRelease
	opRenew
	opCheck
	opGiveBack
)

const (
	flagWait byte = 1 << iota
	flagCreate
	flagFresh
	flagAgain
)

// Serve builds the call of a step on a semaphore. It refuses a step with a request that cannot be part
// of one, and one above MaxStep.
func (l *Library) Serve(key string, stamp Stamp, s *Step) (Call, error) {
	if n := len(s.Ops) + len(s.Candidates); n > MaxStep {
		return Call{}, fmt.Errorf("build a step: %d ops and candidates are more than %d", n, MaxStep)
	}
	args := append(make([]string, 0, 4+len(s.Ops)+len(s.Candidates)), stamp.args()...)
	args = append(args, s.head(), l.place(key))
	for _, op := range s.Ops {
		arg, err := op.packed()
		if err != nil {
			return Call{}, err
		}
		args = append(args, arg)
	}
	for i := range s.Candidates {
		args = append(args, s.Candidates[i].packed())
	}
	return Call{Script: l.serve, Keys: l.layout.keysAndRegistry(key), Args: args}, nil
}

func (s *Step) head() string {
	var p packed
	p.number(s.Head)
	p.number(s.Timeouts)
	p.number(millis(s.Waited))
	p.number(max(1, millis(s.Limits.DefaultLease)))
	p.number(millis(s.Limits.DefaultIdle))
	p.number(int64(s.Limits.MaxSemaphores))
	p.number(int64(len(s.Ops)))
	p.number(int64(len(s.Candidates)))
	p.truth(s.Behind)
	p.number(s.Caught)
	return string(p)
}

// place is how a script reaches the others who work on a semaphore: the command to publish with, the
// channel, and the name.
func (l *Library) place(key string) string {
	var p packed
	p.text(l.layout.Publish())
	p.text(l.layout.Channel(key))
	p.text(key)
	return string(p)
}

func (op *Op) packed() (string, error) {
	p := make(packed, 0, 96)
	switch r := op.Request.(type) {
	case semaphore.Acquire:
		op.acquire(&p, &r)
	case semaphore.Release:
		op.named(&p, opRelease, r.Token, r.Holder)
		p.text(ticket(op.Ticket))
	case semaphore.Renew:
		op.named(&p, opRenew, r.Token, r.Holder)
		p.number(lease(r.Lease))
	case semaphore.Check:
		op.named(&p, opCheck, r.Token, r.Holder)
	case GiveBack:
		op.named(&p, opGiveBack, r.Token, r.Holder)
		p.text(ticket(r.Ticket))
	default:
		return "", fmt.Errorf("build a step: a %T has a call of its own", r)
	}
	return string(p), nil
}

func (op *Op) named(p *packed, kind byte, token int64, holder string) {
	p.byte(kind)
	if op.Again {
		p.byte(flagAgain)
	} else {
		p.byte(0)
	}
	p.number(token)
	p.text(holder)
}

func (op *Op) acquire(p *packed, a *semaphore.Acquire) {
	var flags byte
	if a.Wait > 0 {
		flags |= flagWait
	}
	if a.Create {
		flags |= flagCreate
	}
	if a.Fresh {
		flags |= flagFresh
	}
	if op.Again {
		flags |= flagAgain
	}
	p.byte(opAcquire)
	p.byte(flags)
	p.number(a.Permits)
	p.number(lease(a.Lease))
	p.number(a.Capacity)
	p.text(a.Holder)
	p.text(ticket(op.Ticket))
	p.text(a.Label)
}

func (c *Candidate) packed() string {
	p := make(packed, 0, 96)
	p.number(c.Acquire.Permits)
	p.number(lease(c.Acquire.Lease))
	p.number(millis(c.Waited))
	p.number(c.Arrival)
	p.text(c.Acquire.Holder)
	p.text(ticket(c.Ticket))
	p.text(c.Acquire.Label)
	return string(p)
}

// ReadServe reads the reply to the call of a step. ErrVoid: it did nothing.
func ReadServe(s *Step, raw any) (*Outcome, error) {
	r, err := open(raw)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Now: r.number(), Capacity: r.number(), Token: r.number(), NextEnd: -1}
	if next := r.number(); next >= 0 {
		o.NextEnd = time.Duration(next) * time.Millisecond
	}
	o.Free = r.number()
	marks := r.number()
	o.More, o.Raw, o.Ended = marks&1 != 0, marks&2 != 0, marks>>2
	if o.Gone = o.Capacity < 0; o.Gone {
		o.Capacity = 0
	}
	served := int(r.number())
	o.Ops = make([]Result, len(s.Ops))
	for i := range s.Ops {
		o.Ops[i] = r.result(&s.Ops[i])
	}
	o.Served = make([]semaphore.Reply, min(served, len(s.Candidates)))
	for i := range o.Served {
		c := &s.Candidates[i]
		o.Served[i] = r.result(&Op{Request: *c.Acquire, Ticket: c.Ticket}).Reply
	}
	return o, r.err
}

// result reads the reply to one op.
func (r *reply) result(op *Op) Result {
	code := r.number()
	a, isAcquire := op.Request.(semaphore.Acquire)
	switch {
	case code == codeNo && isAcquire:
		return Result{}
	case code == codeNo, code == codeYes:
		return Result{Reply: semaphore.Reply{Value: semaphore.Number(code)}}
	case code == codeNumber:
		return Result{Reply: semaphore.Reply{Value: semaphore.Number(r.number())}}
	case code == codeJoins:
		return Result{Joins: true}
	case code == codeGrant, code == codeReplay:
		return Result{Reply: semaphore.Reply{Value: r.grant(&a, op.Ticket, code == codeReplay)}}
	}
	return Result{Reply: semaphore.Reply{Err: r.refusal(code, asked{permits: a.Permits, lease: op.lease()})}}
}

func (op *Op) lease() time.Duration {
	switch q := op.Request.(type) {
	case semaphore.Acquire:
		return q.Lease
	case semaphore.Renew:
		return q.Lease
	}
	return 0
}

func (r *reply) grant(a *semaphore.Acquire, t semaphore.Ticket, replayed bool) *semaphore.Grant {
	g := &semaphore.Grant{Holder: a.Holder, Ticket: t, Replayed: replayed, Token: r.number(), Lease: semaphore.Persist}
	if left := r.number(); left >= 0 {
		g.Lease = time.Duration(left) * time.Millisecond
	}
	g.Slots = r.slots()
	return g
}

// slots reads places as the scripts keep them: "3", or "0-4,7".
func (r *reply) slots() []semaphore.Range {
	text := r.text()
	if text == "" {
		return nil
	}
	ranges := make([]semaphore.Range, 0, 1+strings.Count(text, ","))
	for one := range strings.SplitSeq(text, ",") {
		first, last, several := strings.Cut(one, "-")
		if !several {
			last = first
		}
		f, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			r.fail("slots: " + err.Error())
		}
		l, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			r.fail("slots: " + err.Error())
		}
		ranges = append(ranges, semaphore.Range{First: f, Last: l})
	}
	return ranges
}
