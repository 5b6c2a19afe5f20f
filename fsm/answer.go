package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// The kinds of values of a reply, as encoded. A kind is never given another meaning.
const (
	valueError   = 0
	valueNone    = 1
	valueInLine  = 2
	valueNumber  = 3
	valueGrant   = 4
	valueUsage   = 5
	valueInfo    = 6
	valueHolders = 7
	valueWaiters = 8
	valueKeys    = 9
)

// AppendReply appends the encoding of a reply: its kind (u8), and its fields in the order in which
// package semaphore declares them. So the leader tells a node what became of the node's requests. It
// may be called from any goroutine. A reply that no Apply makes is a bug of the caller: it panics.
func AppendReply(dst []byte, r semaphore.Reply) []byte {
	if r.Err != nil {
		return appendError(dst, r.Err)
	}
	switch v := r.Value.(type) {
	case nil:
		return append(dst, valueNone)
	case InLine:
		return append(dst, valueInLine)
	case semaphore.Number:
		return binary.AppendVarint(append(dst, valueNumber), int64(v))
	case *semaphore.Grant:
		return appendGrant(append(dst, valueGrant), v)
	case semaphore.Usage:
		return appendNumbers(append(dst, valueUsage), v.Capacity, v.InUse, v.Available)
	case *semaphore.Info:
		return appendInfo(append(dst, valueInfo), v)
	case *semaphore.HolderPage, *semaphore.WaiterPage, *semaphore.KeyPage:
		return appendListing(dst, v)
	}
	panic(fmt.Sprintf("fsm: reply of unknown type %T", r.Value))
}

func appendError(dst []byte, err error) []byte {
	var e *semaphore.Error
	if !errors.As(err, &e) {
		panic(fmt.Sprintf("fsm: error of unknown type %T", err))
	}
	return appendText(appendText(append(dst, valueError), string(e.Code)), e.Message)
}

func appendNumbers(dst []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

func appendGrant(dst []byte, g *semaphore.Grant) []byte {
	dst = binary.AppendVarint(appendText(dst, g.Holder), g.Token)
	dst = binary.AppendUvarint(dst, uint64(len(g.Slots)))
	for _, r := range g.Slots {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(r.First)), uint64(r.Last-r.First))
	}
	dst = binary.AppendVarint(dst, int64(g.Lease))
	return appendTicket(appendTruth(dst, g.Replayed), g.Ticket)
}

func appendInfo(dst []byte, i *semaphore.Info) []byte {
	dst = appendText(dst, i.Name)
	for _, n := range infoNumbers(i) {
		dst = binary.AppendVarint(dst, *n)
	}
	dst = appendSettings(dst, i.Settings)
	dst = appendTruth(dst, i.NextExpiry.Given)
	return binary.AppendVarint(dst, int64(i.NextExpiry.Value))
}

// infoNumbers are the numbers of an Info, in the order of their encoding.
func infoNumbers(i *semaphore.Info) []*int64 {
	c := &i.Counters
	return []*int64{
		&i.Capacity, &i.InUse, &i.Available, &i.Excess, &i.Quarantined, &i.Missing, &i.Surplus, &i.Rows,
		&i.Holders, &i.Waiters, &i.Orphans, (*int64)(&i.OldestWait), &i.LastToken,
		&c.GrantsImmediate, &c.GrantsWaited, &c.Refused, &c.WaitTimeouts, (*int64)(&c.WaitTotal),
		&c.Releases, &c.Renewals, &c.Expirations, &c.Reconciled, (*int64)(&c.HeldTotal),
	}
}

func appendListing(dst []byte, page any) []byte {
	switch p := page.(type) {
	case *semaphore.HolderPage:
		dst = appendPage(append(dst, valueHolders), p.Next, len(p.Rows))
		for _, r := range p.Rows {
			dst = appendNumbers(appendText(dst, r.Holder), r.Token, r.Slot, r.Permits, int64(r.Remaining), int64(r.Held))
			dst = appendText(dst, r.Client)
		}
	case *semaphore.WaiterPage:
		dst = appendPage(append(dst, valueWaiters), p.Next, len(p.Rows))
		for _, r := range p.Rows {
			dst = appendNumbers(appendText(dst, r.Holder), r.Permits, int64(r.Waited), int64(r.Remaining))
			dst = appendText(dst, r.Client)
		}
	case *semaphore.KeyPage:
		dst = appendPage(append(dst, valueKeys), p.Next, len(p.Keys))
		for _, key := range p.Keys {
			dst = appendText(dst, key)
		}
	}
	return dst
}

// AppendEvent appends the number of an event's ticket and its reply.
func AppendEvent(dst []byte, e Event) []byte {
	return AppendReply(binary.AppendUvarint(dst, e.Ticket.Number), e.Reply)
}

// DecodeEvents decodes events, which must be all of data, of one incarnation. They do not refer to data.
func DecodeEvents(data []byte, incarnation uint64) ([]Event, error) {
	var events []Event
	r := &reader{rest: string(data)}
	for len(r.rest) > 0 {
		ticket := semaphore.Ticket{Incarnation: incarnation, Number: r.uvar()}
		events = append(events, Event{ticket, r.reply()})
	}
	if r.err != nil {
		return nil, fmt.Errorf("fsm: events: %w", r.err)
	}
	return events, nil
}

// DecodeReplies decodes count replies, which must be all of data. They do not refer to data.
func DecodeReplies(data []byte, count int) ([]semaphore.Reply, error) {
	if count > len(data) {
		return nil, errTruncated
	}
	r := &reader{rest: string(data)}
	replies := make([]semaphore.Reply, count)
	for i := range replies {
		replies[i] = r.reply()
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("fsm: replies: %w", err)
	}
	return replies, nil
}

func (r *reader) reply() semaphore.Reply {
	switch kind := r.byte(); kind {
	case valueError:
		return semaphore.Reply{Err: &semaphore.Error{Code: semaphore.Code(r.text()), Message: r.text()}}
	case valueNone:
		return semaphore.Reply{}
	case valueInLine:
		return semaphore.Reply{Value: InLine{}}
	case valueNumber:
		return semaphore.Reply{Value: semaphore.Number(r.svar())}
	case valueGrant:
		return semaphore.Reply{Value: r.grantReply()}
	case valueUsage:
		return semaphore.Reply{Value: semaphore.Usage{Capacity: r.svar(), InUse: r.svar(), Available: r.svar()}}
	case valueInfo:
		return semaphore.Reply{Value: r.infoReply()}
	case valueHolders:
		return semaphore.Reply{Value: r.holderPage()}
	case valueWaiters:
		return semaphore.Reply{Value: r.waiterPage()}
	case valueKeys:
		return semaphore.Reply{Value: r.keyPage()}
	}
	r.fail("unknown kind of reply")
	return semaphore.Reply{}
}

func (r *reader) grantReply() *semaphore.Grant {
	g := &semaphore.Grant{Holder: r.text(), Token: r.svar()}
	n := r.length()
	g.Slots = slices.Grow(g.Slots, n)
	for range n {
		first := int64(r.uvar())
		g.Slots = append(g.Slots, semaphore.Range{First: first, Last: first + int64(r.uvar())})
	}
	g.Lease, g.Replayed, g.Ticket = time.Duration(r.svar()), r.truth(), r.ticket()
	return g
}

// length reads how many things follow, each of which takes a byte or more.
func (r *reader) length() int {
	n := r.uvar()
	if n > uint64(len(r.rest)) {
		r.fail("more items than bytes")
		return 0
	}
	return int(n)
}

func (r *reader) infoReply() *semaphore.Info {
	i := &semaphore.Info{Name: r.text()}
	for _, n := range infoNumbers(i) {
		*n = r.svar()
	}
	i.Settings = r.settings()
	i.NextExpiry = semaphore.Setting{Given: r.truth(), Value: time.Duration(r.svar())}
	return i
}

// page reads the cursor and the length of a listing.
func (r *reader) page() (next uint64, rows int) {
	next, n := r.uvar(), r.svar()
	if n < 0 || n > int64(len(r.rest)) {
		r.fail("more rows than bytes")
		return 0, 0
	}
	return next, int(n)
}

func (r *reader) holderPage() *semaphore.HolderPage {
	next, n := r.page()
	p := &semaphore.HolderPage{Next: next, Rows: sized[semaphore.HolderRow](n)}
	for i := range p.Rows {
		p.Rows[i] = semaphore.HolderRow{
			Holder: r.text(), Token: r.svar(), Slot: r.svar(), Permits: r.svar(),
			Remaining: time.Duration(r.svar()), Held: time.Duration(r.svar()), Client: r.text(),
		}
	}
	return p
}

func (r *reader) waiterPage() *semaphore.WaiterPage {
	next, n := r.page()
	p := &semaphore.WaiterPage{Next: next, Rows: sized[semaphore.WaiterRow](n)}
	for i := range p.Rows {
		p.Rows[i] = semaphore.WaiterRow{
			Holder: r.text(), Permits: r.svar(), Waited: time.Duration(r.svar()),
			Remaining: time.Duration(r.svar()), Client: r.text(),
		}
	}
	return p
}

func (r *reader) keyPage() *semaphore.KeyPage {
	next, n := r.page()
	p := &semaphore.KeyPage{Next: next, Keys: sized[string](n)}
	for i := range p.Keys {
		p.Keys[i] = r.text()
	}
	return p
}

// sized makes a slice of n items, and none for 0.
func sized[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}
