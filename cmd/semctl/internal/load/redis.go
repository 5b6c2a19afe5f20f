package load

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// acquireScript takes a free permit, reads the time, makes a token, and notes the holder with the end
// of its lease: what people write who build a semaphore in Redis.
const acquireScript = `
if not redis.call('RPOP', KEYS[1]) then return false end
local t = redis.call('TIME')
local token = redis.call('INCR', KEYS[3])
redis.call('ZADD', KEYS[2], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2], ARGV[1])
return {ARGV[1], token}`

// releaseScript gives back what the holder has, once.
const releaseScript = `
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('RPUSH', KEYS[1], 'p')
return 1`

// redis is a Redis with those scripts: a List of free permits and a ZSET of holders. A wait is BRPOP,
// with the holder noted in a second step, because a script cannot wait.
type redis struct {
	acquireSHA, releaseSHA string
}

// maxRedisCapacity is the largest capacity: every free permit is an element of a List.
const maxRedisCapacity = 1_000_000

func (r *redis) prepare(c *conn, keys []string, capacity int64) error {
	if capacity*int64(len(keys)) > maxRedisCapacity {
		return fmt.Errorf("a Redis holds each free permit by itself: %d are too many, at most %d", capacity*int64(len(keys)), maxRedisCapacity)
	}
	for _, s := range []struct {
		script string
		sha    *string
	}{{acquireScript, &r.acquireSHA}, {releaseScript, &r.releaseSHA}} {
		loaded, err := c.do("SCRIPT", "LOAD", s.script)
		if err != nil {
			return fmt.Errorf("load a script: %w", err)
		}
		*s.sha = loaded.text
	}
	for _, key := range keys {
		if err := fill(c, permits(key), capacity); err != nil {
			return fmt.Errorf("fill %s: %w", key, err)
		}
	}
	return nil
}

// fill pushes that many permits.
func fill(c *conn, list string, n int64) error {
	const batch = 1000
	for ; n > 0; n -= batch {
		words := []any{"RPUSH", list}
		for range min(n, batch) {
			words = append(words, "p")
		}
		if _, err := c.do(words...); err != nil {
			return err
		}
	}
	return nil
}

func permits(key string) string { return key + ":permits" }
func holders(key string) string { return key + ":holders" }
func tokens(key string) string  { return key + ":token" }

func (r *redis) acquire(c *conn, key, holder string, wait time.Duration) {
	if wait == 0 {
		c.add("EVALSHA", r.acquireSHA, "3", permits(key), holders(key), tokens(key), holder, lease.Milliseconds())
		return
	}
	c.add("BRPOP", permits(key), strconv.FormatFloat(wait.Seconds(), 'f', 3, 64))
}

func (r *redis) settle(c *conn, key, holder string, wait time.Duration) int {
	if wait == 0 {
		return 0
	}
	c.add("ZADD", holders(key), time.Now().Add(lease).UnixMilli(), holder)
	return 1
}

func (r *redis) release(c *conn, key, holder string) {
	c.add("EVALSHA", r.releaseSHA, "2", permits(key), holders(key), holder)
}

func (r *redis) clean(c *conn, keys []string) error {
	var errs []error
	for _, key := range keys {
		_, err := c.do("DEL", permits(key), holders(key), tokens(key))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
