package history

import (
	"fmt"
	"strings"
	"time"
)

// Kind is what was asked.
type Kind string

// The commands that are recorded.
const (
	Acquire Kind = "ACQUIRE"
	Renew   Kind = "RENEW"
	Release Kind = "RELEASE"
	Check   Kind = "CHECK"
	Cancel  Kind = "CANCEL"
	Waiters Kind = "WAITERS"
	Count   Kind = "INFO"
)

// Op is one request and its answer.
type Op struct {
	Client  int // which of the clients asked; one asks one thing at a time
	Node    int // whom it asked
	Kind    Kind
	Key     string
	Holder  string
	Token   int64 // as asked; 0: without
	Permits int64
	Lease   time.Duration
	Wait    time.Duration
	Fresh   bool

	Call   time.Duration
	Return time.Duration
	Result Result
}

// Outcome is what the answer says of the effect.
type Outcome string

const (
	// Done is a reply: a grant, a number, a listing.
	Done Outcome = "done"
	// Null is no permit in time.
	Null Outcome = "null"
	// Refused is an error that says that nothing happened.
	Refused Outcome = "refused"
	// Unknown is an error that does not say, or no answer at all: it may have taken effect, or may yet.
	Unknown Outcome = "unknown"
)

// Codes of results that are not an error reply's first word.
const (
	Broken = "broken"  // the connection ended
	HungUp = "hung up" // the client ended it on purpose
	Silent = "silent"  // no answer for as long as the client was patient
)

// Result is what an answer says.
type Result struct {
	Outcome Outcome
	Code    string   // of Refused and Unknown
	Text    string   // of Refused and Unknown
	Grant   Grant    // of Acquire
	Number  int64    // of Renew, Release, Check, Cancel
	Line    []string // of Waiters: holders, in order
	Books   Books    // of Count
}

// Grant is the reply to an Acquire.
type Grant struct {
	Holder   string
	Token    int64
	Slots    []int64
	Lease    time.Duration // what was left of it
	Replayed bool
}

// Books is the part of SEM.INFO that is checked.
type Books struct {
	Capacity, InUse, Available, Holders, Waiters int64
}

// String is a line of a log.
func (o Op) String() string {
	return fmt.Sprintf("%s - %s  client %d, node %d: %s = %s", stamp(o.Call), stamp(o.Return), o.Client, o.Node, o.asked(), o.Result.answer(o.Kind))
}

func stamp(d time.Duration) string { return fmt.Sprintf("%9.4f", d.Seconds()) }

func (o Op) asked() string {
	words := []string{string(o.Kind), o.Key, o.Holder}
	if o.Token != 0 {
		words = append(words, fmt.Sprint("TOKEN ", o.Token))
	}
	if o.Kind == Acquire {
		words = append(words, fmt.Sprint("PERMITS ", o.Permits))
	}
	if o.Lease != 0 {
		words = append(words, fmt.Sprint("LEASE ", o.Lease.Milliseconds()))
	}
	if o.Wait != 0 {
		words = append(words, fmt.Sprint("WAIT ", o.Wait.Milliseconds()))
	}
	if o.Fresh {
		words = append(words, "FRESH")
	}
	return strings.Join(words, " ")
}

func (r Result) answer(kind Kind) string {
	switch {
	case r.Outcome == Null:
		return "null"
	case r.Outcome != Done:
		return fmt.Sprintf("%s (%s %s)", r.Outcome, r.Code, r.Text)
	case kind == Acquire:
		return fmt.Sprintf("%+v", r.Grant)
	case kind == Waiters:
		return fmt.Sprint(r.Line)
	case kind == Count:
		return fmt.Sprintf("%+v", r.Books)
	}
	return fmt.Sprint(r.Number)
}
