package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
	"github.com/semserver/semserver/tests/internal/resp"
)

// words are a request as it is sent.
func words(o history.Op) []any {
	w := []any{"SEM." + string(o.Kind), o.Key}
	if o.Kind == history.Acquire {
		w = append(w, "HOLDER", o.Holder, "PERMITS", o.Permits, "LEASE", o.Lease.Milliseconds(), "SLOTS")
		if o.Wait > 0 {
			w = append(w, "WAIT", o.Wait.Milliseconds())
		}
		if o.Fresh {
			w = append(w, "FRESH")
		}
		return w
	}
	if o.Holder != "" {
		w = append(w, o.Holder)
	}
	switch o.Kind {
	case history.Check:
		return append(w, o.Token)
	case history.Waiters:
		return append(w, "COUNT", 1000)
	}
	if o.Lease > 0 {
		w = append(w, "LEASE", o.Lease.Milliseconds())
	}
	if o.Token != 0 {
		w = append(w, "TOKEN", o.Token)
	}
	return w
}

// doubtful are the error codes that do not say that nothing happened. A SHUTDOWN may keep the place in
// line, which another node may then serve.
func doubtful() []string { return []string{"UNCERTAIN", "SHUTDOWN"} }

// read makes a result of a reply.
func read(o history.Op, reply any) history.Result {
	if refused, ok := reply.(resp.Error); ok {
		r := history.Result{Outcome: history.Refused, Code: refused.Code(), Text: refused.Error()}
		if slices.Contains(doubtful(), r.Code) {
			r.Outcome = history.Unknown
		}
		return r
	}
	var r history.Result
	var err error
	switch o.Kind {
	case history.Acquire:
		r, err = readGrant(reply)
	case history.Waiters:
		r, err = readLine(reply)
	case history.Count:
		r, err = readBooks(reply)
	default:
		n, ok := reply.(int64)
		r.Outcome, r.Number = history.Done, n
		if !ok {
			err = fmt.Errorf("not a number")
		}
	}
	if err != nil {
		return history.Result{Outcome: history.Unknown, Code: "unreadable", Text: fmt.Sprintf("%v: %v", err, reply)}
	}
	return r
}

func readGrant(reply any) (history.Result, error) {
	if reply == nil {
		return history.Result{Outcome: history.Null}, nil
	}
	r := history.Result{Outcome: history.Done}
	row, ok := reply.([]any)
	if !ok || len(row) != 6 {
		return r, fmt.Errorf("not a grant")
	}
	var first, left, replayed int64
	var ranges []any
	if err := assign(row, &r.Grant.Holder, &r.Grant.Token, &first, &left, &replayed, &ranges); err != nil {
		return r, err
	}
	r.Grant.Lease, r.Grant.Replayed = time.Duration(left)*time.Millisecond, replayed == 1
	for _, one := range ranges {
		var from, to int64
		bounds, _ := one.([]any)
		if err := assign(bounds, &from, &to); err != nil || to < from || to-from > 1000 {
			return r, fmt.Errorf("not a range of slots: %v", one)
		}
		for slot := from; slot <= to; slot++ {
			r.Grant.Slots = append(r.Grant.Slots, slot)
		}
	}
	if len(r.Grant.Slots) == 0 || r.Grant.Slots[0] != first {
		return r, fmt.Errorf("the slot is not the first of the slots")
	}
	return r, nil
}

func readLine(reply any) (history.Result, error) {
	r := history.Result{Outcome: history.Done}
	var next string
	var rows []any
	page, _ := reply.([]any)
	if err := assign(page, &next, &rows); err != nil || next != "0" {
		return r, fmt.Errorf("not the whole line")
	}
	for _, one := range rows {
		row, _ := one.([]any)
		if len(row) != 5 {
			return r, fmt.Errorf("not a waiter: %v", one)
		}
		r.Line = append(r.Line, fmt.Sprint(row[0]))
	}
	return r, nil
}

func readBooks(reply any) (history.Result, error) {
	r := history.Result{Outcome: history.Done}
	pairs, _ := reply.([]any)
	found := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		n, isNumber := pairs[i+1].(int64)
		if into := bookFor(&r, fmt.Sprint(pairs[i])); into != nil && isNumber {
			*into = n
			found++
		}
	}
	if found != 5 {
		return r, fmt.Errorf("not the books of a semaphore")
	}
	return r, nil
}

func bookFor(r *history.Result, name string) *int64 {
	switch name {
	case "capacity":
		return &r.Books.Capacity
	case "in_use":
		return &r.Books.InUse
	case "available":
		return &r.Books.Available
	case "holders":
		return &r.Books.Holders
	case "waiters":
		return &r.Books.Waiters
	}
	return nil
}

// assign takes a row apart. The targets say what each element must be.
func assign(row []any, targets ...any) error {
	if len(row) != len(targets) {
		return fmt.Errorf("%d elements in place of %d", len(row), len(targets))
	}
	for i, target := range targets {
		var ok bool
		switch into := target.(type) {
		case *int64:
			*into, ok = row[i].(int64)
		case *string:
			*into, ok = row[i].(string)
		case *[]any:
			*into, ok = row[i].([]any)
		}
		if !ok {
			return fmt.Errorf("element %d is %v", i, row[i])
		}
	}
	return nil
}
