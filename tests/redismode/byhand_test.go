package redismode

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/resp"
	"github.com/semserver/semserver/tests/redisd"
)

const (
	permits = "sem:k:permits"
	holders = "sem:k:holders"

	giveBack = "if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then redis.call('RPUSH', KEYS[1], 'permit') return 1 end return 0"
	// compensate drops those whose leases have ended by ARGV[1], and fills up to the capacity ARGV[2].
	compensate = "redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[1]) " +
		"local n = ARGV[2] - redis.call('LLEN', KEYS[1]) - redis.call('ZCARD', KEYS[2]) " +
		"for _ = 1, n do redis.call('RPUSH', KEYS[1], 'permit') end return n"
	both = "return {redis.call('LLEN', KEYS[1]), redis.call('ZCARD', KEYS[2])}"
)

// byHand is a client that follows the recipe on the keys of the semaphore k, and knows nothing of us.
type byHand struct{ *resp.Conn }

func newByHand(t *testing.T, r *redisd.Server) byHand {
	t.Helper()
	return byHand{dial(t, r.Addr).Conn}
}

// pop takes a permit, and waits for it; false is null.
func (c byHand) pop(wait time.Duration) (bool, error) {
	reply, err := c.Do("BRPOP", permits, wait.Seconds())
	if refusal, ok := reply.(resp.Error); ok {
		return false, refusal
	}
	return reply != nil, err
}

// enter says who holds it.
func (c byHand) enter(holder string, lease time.Duration) error {
	if got, err := c.Do("ZADD", holders, time.Now().Add(lease).UnixMilli(), holder); got != int64(1) || err != nil {
		return fmt.Errorf("ZADD of %s: got %v, %v, want 1", holder, got, err)
	}
	return nil
}

// acquire is both steps.
func (c byHand) acquire(holder string, wait, lease time.Duration) (bool, error) {
	got, err := c.pop(wait)
	if !got || err != nil {
		return false, err
	}
	return true, c.enter(holder, lease)
}

// release returns 1 where it gave the permit back, 0 where there was none.
func (c byHand) release(holder string) (any, error) {
	return c.Do("EVAL", giveBack, 2, permits, holders, holder)
}

// compensate returns how many permits it put back.
func (c byHand) compensate(capacity int) (any, error) {
	return c.Do("EVAL", compensate, 2, permits, holders, time.Now().UnixMilli(), capacity)
}

// books are how many permits are free, and how many are held, as the two keys say.
func books(t *testing.T, r *redisd.Server) [2]int64 {
	t.Helper()
	reply, ok := ask(t, r, "EVAL", both, 2, permits, holders).([]any)
	if !ok || len(reply) != 2 {
		t.Fatalf("the books: got %v, want two numbers", reply)
	}
	return [2]int64{reply[0].(int64), reply[1].(int64)}
}

// balances waits until the books say so: a semserver may have a permit in its hands for a moment, which it
// took by hand for somebody who waited. What is free and held together is never more than the capacity.
func balances(t *testing.T, r *redisd.Server, free, held int64) {
	t.Helper()
	want := [2]int64{free, held}
	trial.Await(t, func() error {
		got := books(t, r)
		if got[0]+got[1] > free+held {
			t.Fatalf("free, held: got %v, want %v", got, want)
		}
		if got != want {
			return fmt.Errorf("free, held: got %v, want %v", got, want)
		}
		return nil
	})
}
