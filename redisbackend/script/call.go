package script

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/semserver/semserver/semaphore"
)

// Call is one call of a script, as EVALSHA takes it.
type Call struct {
	Script *Script
	Keys   []string
	Args   []string
}

// Stamp is what every call that may change something carries.
type Stamp struct {
	NotAfter int64  // Redis's clock in milliseconds: later than this the call does nothing
	Server   uint64 // which server process calls
	Serial   uint64 // grows from each call of this server on one semaphore to the next; below 2^53
	Floor    int64  // the highest token that this server has seen from this Redis
}

// ErrVoid says that a call certainly did nothing, because it came after its NotAfter or was overtaken
// by a later one of the same server.
var ErrVoid = errors.New("the call came too late and did nothing")

// GiveBack returns the permits of a grant that was never told, unless it was replayed or renewed
// meanwhile. It is answered with 1 when it did so.
type GiveBack struct {
	Key, Holder string
	Token       int64 // 0: whichever grant answers the ticket
	Ticket      semaphore.Ticket
}

// Semaphore implements [semaphore.Request].
func (g GiveBack) Semaphore() string { return g.Key }

// ticket writes a ticket as the scripts keep it; "" for none.
func ticket(t semaphore.Ticket) string {
	if t == (semaphore.Ticket{}) {
		return ""
	}
	return strconv.FormatUint(t.Incarnation, 36) + "." + strconv.FormatUint(t.Number, 36)
}

// reply reads the flat array that a script answers with, one element after another. The first thing
// that is not as expected is kept, and everything after it is zero.
type reply struct {
	rest []any
	err  error
}

// open begins to read a reply. ErrVoid: the script did nothing.
func open(raw any) (*reply, error) {
	all, ok := raw.([]any)
	if !ok {
		return nil, fmt.Errorf("read a script's reply: got a %T, want an array", raw)
	}
	r := &reply{rest: all}
	if r.number() == 0 && r.err == nil {
		return nil, ErrVoid
	}
	return r, r.err
}

func (r *reply) next() any {
	if len(r.rest) == 0 {
		r.fail("it is too short")
		return nil
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *reply) number() int64 {
	v := r.next()
	n, ok := v.(int64)
	if !ok && r.err == nil {
		r.fail(fmt.Sprintf("got a %T, want a number", v))
	}
	return n
}

func (r *reply) text() string {
	v := r.next()
	s, ok := v.(string)
	if !ok && r.err == nil {
		r.fail(fmt.Sprintf("got a %T, want a string", v))
	}
	return s
}

func (r *reply) fail(why string) {
	if r.err == nil {
		r.err = fmt.Errorf("read a script's reply: %s", why)
	}
}
