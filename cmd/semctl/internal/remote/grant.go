package remote

import "time"

// Range is a run of slots, both ends included.
type Range struct{ First, Last int64 }

// Grant is the answer to an acquire that got its permits.
type Grant struct {
	Holder   string
	Token    int64
	Slot     int64         // the lowest of them; -1: there are none
	Lease    time.Duration // what was left of it when the answer was made; Forever: it never ends
	Replayed bool          // the holder had it already
	Slots    []Range       // where they were asked for
}

// ReadGrant reads a grant from a reply that is not null.
func ReadGrant(reply any) (Grant, error) {
	c, ok := reply.([]any)
	if !ok || len(c) < 5 {
		return Grant{}, unexpected(false, reply)
	}
	r := reader{}
	g := Grant{
		Holder: r.text(c[0]), Token: r.number(c[1]), Slot: r.number(c[2]),
		Lease: r.duration(c[3]), Replayed: r.number(c[4]) == 1,
	}
	if len(c) > 5 {
		g.Slots = r.ranges(c[5])
	}
	return g, unexpected(!r.failed, reply)
}

func (r *reader) ranges(v any) []Range {
	all, ok := v.([]any)
	r.failed = r.failed || !ok
	var ranges []Range
	for _, one := range all {
		pair, ok := one.([]any)
		if !ok || len(pair) != 2 {
			r.failed = true
			return nil
		}
		ranges = append(ranges, Range{r.number(pair[0]), r.number(pair[1])})
	}
	return ranges
}

// ReadNumbers reads a reply of n numbers.
func ReadNumbers(reply any, n int) ([]int64, error) {
	c, ok := reply.([]any)
	if !ok || len(c) < n {
		return nil, unexpected(false, reply)
	}
	r := reader{}
	all := make([]int64, n)
	for i := range all {
		all[i] = r.number(c[i])
	}
	return all, unexpected(!r.failed, reply)
}
