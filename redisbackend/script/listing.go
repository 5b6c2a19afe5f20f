package script

import (
	"fmt"
	"strconv"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// Inspect builds the call that reads the figures of one semaphore. It may end what has expired on the
// way.
func (l *Library) Inspect(stamp Stamp, i semaphore.Inspect) Call {
	return l.care(l.inspect, stamp, i.Key, nil)
}

// ReadInspect reads the reply to Inspect: an Info without what only a line knows, or an error.
func ReadInspect(i semaphore.Inspect, raw any) (*Answer, error) {
	r, err := open(raw)
	if err != nil {
		return nil, err
	}
	a := &Answer{Now: r.number()}
	if code := r.number(); code != codeYes {
		a.Err = r.refusal(code, asked{})
		return a, r.err
	}
	info := &semaphore.Info{Name: i.Key}
	info.Capacity, info.InUse, info.Available = r.number(), r.number(), r.number()
	info.Excess, info.Quarantined, info.Missing, info.Surplus = r.number(), r.number(), r.number(), r.number()
	info.Rows, info.Holders, info.LastToken = r.number(), r.number(), r.number()
	if next := r.number(); next >= 0 {
		info.NextExpiry = semaphore.Set(time.Duration(next) * time.Millisecond)
	}
	info.Settings = r.settings()
	info.Counters = r.counters()
	a.Value = info
	return a, r.err
}

func (r *reply) counters() semaphore.Counters {
	ms := func() time.Duration { return time.Duration(r.number()) * time.Millisecond }
	return semaphore.Counters{
		GrantsImmediate: r.number(), GrantsWaited: r.number(), Refused: r.number(),
		WaitTimeouts: r.number(), WaitTotal: ms(), Releases: r.number(), Renewals: r.number(),
		Expirations: r.number(), Reconciled: r.number(), HeldTotal: ms(),
	}
}

// A cursor of a listing of grants says in its two highest bits how the listing goes on, as holders.lua
// knows it, and below where.
const phaseShift = 62

// Holders builds the call that reads a page of the live grants.
func (l *Library) Holders(h semaphore.Holders) Call {
	phase, cursor := h.Cursor>>phaseShift, h.Cursor&(1<<phaseShift-1)
	return Call{
		Script: l.page,
		Keys:   l.layout.keys(h.Key),
		Args:   []string{strconv.FormatUint(phase, 10), strconv.FormatUint(cursor, 10), strconv.Itoa(page(h.Count))},
	}
}

// page is how many rows a listing may have.
func page(count int) int { return min(max(count, 1), semaphore.MaxCount) }

// ReadHolders reads the reply to Holders: a page, or an error. Of a large semaphore, a page may have some
// rows more than were asked for, or none although there is a next one; and a grant may be seen twice when
// many others come or go at the same time.
func ReadHolders(raw any) (*Answer, error) {
	r, err := open(raw)
	if err != nil {
		return nil, err
	}
	a := &Answer{Now: r.number()}
	if code := r.number(); code != codeYes {
		a.Err = r.refusal(code, asked{})
		return a, r.err
	}
	phase, cursor := r.number(), r.text()
	rest, err := strconv.ParseUint(cursor, 10, phaseShift)
	if err != nil {
		return nil, fmt.Errorf("read a script's reply: cursor: %w", err)
	}
	p := &semaphore.HolderPage{Next: uint64(phase)<<phaseShift | rest}
	for len(r.rest) > 0 && r.err == nil {
		p.Rows = append(p.Rows, r.holder())
	}
	a.Value = p
	return a, r.err
}

func (r *reply) holder() semaphore.HolderRow {
	row := semaphore.HolderRow{Holder: r.text(), Token: r.number(), Slot: -1, Remaining: semaphore.Persist}
	if slots := r.slots(); len(slots) > 0 {
		row.Slot = slots[0].First
	}
	row.Permits = r.number()
	if left := r.number(); left >= 0 {
		row.Remaining = time.Duration(left) * time.Millisecond
	}
	row.Held = time.Duration(r.number()) * time.Millisecond
	row.Client = r.text()
	return row
}

// A cursor of a scan is a number in a registry, and above it which registry: there is one for each slot of
// a Redis Cluster, and one elsewhere.
const registryShift = 48

// probed is how many registries of a Redis Cluster a page looks into.
const probed = 512

// Scan builds the calls that read a page of names, which may travel together: the registries that a page
// may need, one call for each.
func (l *Library) Scan(s semaphore.Scan) []Call {
	from, number := int(s.Cursor>>registryShift), s.Cursor&(1<<registryShift-1)
	var calls []Call
	for i := from; i < min(from+probed, l.layout.registries()); i++ {
		calls = append(calls, Call{
			Script: l.scan,
			Keys:   []string{l.layout.registry(i)},
			Args:   []string{strconv.FormatUint(number, 10), strconv.Itoa(page(s.Count) + 1)},
		})
		number = 0
	}
	return calls
}

// ReadScan reads the replies to the calls of Scan. A page may be shorter than was asked for, even empty,
// although there is a next one.
func (l *Library) ReadScan(s semaphore.Scan, replies []any) (*semaphore.KeyPage, error) {
	p, first := &semaphore.KeyPage{}, s.Cursor>>registryShift
	for i, raw := range replies {
		r, err := open(raw)
		if err != nil {
			return nil, err
		}
		for len(r.rest) > 0 && r.err == nil {
			name, number := r.text(), r.number()
			if len(p.Keys) == page(s.Count) {
				return p, r.err
			}
			p.Keys = append(p.Keys, name)
			p.Next = (first+uint64(i))<<registryShift | uint64(number)
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	p.Next = 0
	if next := int(first) + len(replies); len(replies) > 0 && next < l.layout.registries() {
		p.Next = uint64(next) << registryShift
	}
	return p, nil
}
