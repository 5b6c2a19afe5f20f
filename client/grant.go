package client

import (
	"fmt"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// grant is a grant as a server told it.
type grant struct {
	token    int64
	slots    []Slots
	lease    lease
	replayed bool
}

// Slots is a run of places that a permit occupies, both ends included.
type Slots = semaphore.Range

// readGrant reads the answer to a SEM.ACQUIRE: holder, token, slot, lease, replayed, and perhaps all
// slots.
func readGrant(reply any, asked time.Duration) (grant, error) {
	list, _ := reply.([]any)
	if len(list) < 5 {
		return grant{}, fmt.Errorf("the server answered SEM.ACQUIRE with %v, which is not a grant", reply)
	}
	numbers, ok := integers(list[1:5])
	if !ok {
		return grant{}, fmt.Errorf("the server answered SEM.ACQUIRE with %v, which is not a grant", reply)
	}
	g := grant{token: numbers[0], replayed: numbers[3] == 1}
	g.lease = lease{asked: asked, length: max(0, milliseconds(numbers[2]))}
	if slot := numbers[1]; slot >= 0 {
		g.slots = []Slots{{First: slot, Last: slot}}
	}
	if len(list) == 5 {
		return g, nil
	}
	var err error
	g.slots, err = readSlots(list[5])
	return g, err
}

func readSlots(reply any) ([]Slots, error) {
	list, ok := reply.([]any)
	var all []Slots
	for _, pair := range list {
		ends, isList := pair.([]any)
		numbers, isNumbers := integers(ends)
		ok = ok && isList && isNumbers && len(numbers) == 2
		if ok {
			all = append(all, Slots{First: numbers[0], Last: numbers[1]})
		}
	}
	if !ok {
		return nil, fmt.Errorf("the server answered SEM.ACQUIRE with slots %v, which are not ranges", reply)
	}
	return all, nil
}

// readRenewal reads the answer to a SEM.RENEW: the lease in force, 0 where the grant is not held, less
// than 0 where it never ends.
func readRenewal(reply any) (time.Duration, error) {
	ms, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("the server answered SEM.RENEW with %v, which is not a number", reply)
	}
	return milliseconds(ms), nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func integers(list []any) ([]int64, bool) {
	var numbers []int64
	for _, v := range list {
		n, ok := v.(int64)
		if !ok {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}
