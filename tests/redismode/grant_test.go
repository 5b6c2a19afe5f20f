package redismode

import (
	"fmt"

	"github.com/semserver/semserver/tests/internal/resp"
)

// grant is what ACQUIRE answers, with the slots where it was asked for them.
type grant struct {
	holder              string
	token, slot, leased int64
	replayed            bool
	slots               []int64
}

// asGrant reads a reply as a grant.
func asGrant(reply any) (grant, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) < 5 {
		return grant{}, fmt.Errorf("got %v, want a grant", reply)
	}
	holder, ok := parts[0].(string)
	var numbers [4]int64
	for i := range numbers {
		n, isNumber := parts[i+1].(int64)
		ok, numbers[i] = ok && isNumber, n
	}
	if !ok {
		return grant{}, fmt.Errorf("got %v, want a grant", reply)
	}
	g := grant{holder: holder, token: numbers[0], slot: numbers[1], leased: numbers[2], replayed: numbers[3] == 1}
	if len(parts) == 6 {
		for _, run := range parts[5].([]any) {
			ends := run.([]any)
			for slot := ends[0].(int64); slot <= ends[1].(int64); slot++ {
				g.slots = append(g.slots, slot)
			}
		}
	}
	return g, nil
}

// acquire takes one permit of k, waiting for it if need be, for whoever may not end the test.
func acquire(c *resp.Conn, holder string) (grant, error) {
	reply, err := c.Do("SEM.ACQUIRE", "k", "HOLDER", holder, "WAIT", patience.Milliseconds(), "LEASE", longLease)
	if err != nil {
		return grant{}, err
	}
	return asGrant(reply)
}

// release gives it back, which must be the first time.
func release(c *resp.Conn, holder string) error {
	if got, err := c.Do("SEM.RELEASE", "k", holder); got != int64(1) || err != nil {
		return fmt.Errorf("release of %s: got %v, %v, want 1", holder, got, err)
	}
	return nil
}

// received reads a reply that must be a grant, for whoever may not end the test.
func received(c *resp.Conn) (grant, error) {
	reply, err := c.Receive(patience)
	if err != nil {
		return grant{}, err
	}
	return asGrant(reply)
}
