package script

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/semaphore"
)

// simplest is the least that an acquire by script can be: a clock, a permit, a holder.
const simplest = `
local t = redis.call('TIME')
if not redis.call('LPOP', KEYS[1]) then return 0 end
redis.call('ZADD', KEYS[2], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2], ARGV[1])
return 1`

// simplestRelease is its counterpart.
const simplestRelease = `
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
return redis.call('RPUSH', KEYS[1], 'p')`

// BenchmarkSimplest is what the others are compared with: acquire and release, a script call each.
func BenchmarkSimplest(b *testing.B) {
	r := newRig(b)
	r.do("EVAL", "for i = 1, 200 do redis.call('RPUSH', KEYS[1], 'p') end", 1, "l")
	acquire, release := redis.NewScript(simplest), redis.NewScript(simplestRelease)
	ctx := context.Background()
	for _, s := range []*redis.Script{acquire, release} {
		if err := s.Load(ctx, r.redis).Err(); err != nil {
			b.Fatal(err)
		}
	}
	start := r.cpu()
	for n := 0; b.Loop(); n++ {
		pipe := r.redis.Pipeline()
		for i := range together {
			pipe.EvalSha(ctx, acquire.Hash(), []string{"l", "z"}, holder(n, i), 30000)
		}
		for i := range together {
			pipe.EvalSha(ctx, release.Hash(), []string{"l", "z"}, holder(n, i))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			b.Fatal(err)
		}
	}
	r.report(b, start, 2*together)
}

// together is how many requests of a kind travel in one pipeline, so that Redis is what is measured; and
// how many permits are held at a time.
const together = 50

func holder(n, i int) string { return fmt.Sprintf("pod-7f9c-%05d-%02d", n, i) }

// BenchmarkServe measures acquire and release with so many ops in each call.
func BenchmarkServe(b *testing.B) {
	for _, ops := range []int{1, 16, 50} {
		b.Run(fmt.Sprintf("ops=%d", ops), func(b *testing.B) { benchmarkServe(b, ops) })
	}
}

func benchmarkServe(b *testing.B, ops int) {
	r := newRig(b)
	r.create("k", 200)
	if err := r.redis.ScriptLoad(context.Background(), r.lib.serve.Source).Err(); err != nil {
		b.Fatal(err)
	}
	start := r.cpu()
	for n := 0; b.Loop(); n++ {
		pipe := r.redis.Pipeline()
		for from := 0; from < together; from += ops {
			s := &Step{Limits: r.limits}
			for i := from; i < min(from+ops, together); i++ {
				a := semaphore.Acquire{Key: "k", Holder: holder(n, i), Permits: 1}
				s.Ops = append(s.Ops, Op{Request: a, Ticket: semaphore.Ticket{Incarnation: 1, Number: uint64(n*together + i + 1)}})
			}
			r.pipe(pipe, s)
		}
		for from := 0; from < together; from += ops {
			s := &Step{Limits: r.limits}
			for i := from; i < min(from+ops, together); i++ {
				a := semaphore.Release{Key: "k", Holder: holder(n, i)}
				s.Ops = append(s.Ops, Op{Request: a, Ticket: semaphore.Ticket{Incarnation: 1, Number: uint64(n*together + i + 1)}})
			}
			r.pipe(pipe, s)
		}
		if _, err := pipe.Exec(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	r.report(b, start, 2*together)
	r.books("k", 200, 0)
}

func (r *rig) pipe(pipe redis.Pipeliner, s *Step) {
	c, err := r.lib.Serve("k", r.stamp(), s)
	if err != nil {
		r.Fatal(err)
	}
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a
	}
	pipe.EvalSha(context.Background(), c.Script.SHA, c.Keys, args...)
}

// cpu is the processor time that Redis has used.
func (r *rig) cpu() time.Duration {
	var user, sys float64
	for _, line := range strings.Split(r.do("INFO", "cpu").(string), "\r\n") {
		var v float64
		if n, _ := fmt.Sscanf(line, "used_cpu_user_main_thread:%f", &v); n == 1 {
			user = v
		}
		if n, _ := fmt.Sscanf(line, "used_cpu_sys_main_thread:%f", &v); n == 1 {
			sys = v
		}
	}
	return time.Duration((user + sys) * float64(time.Second))
}

// report says what a request cost, on the whole and of Redis's processor.
func (r *rig) report(b *testing.B, start time.Duration, requests int) {
	n := float64(b.N * requests)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/request")
	b.ReportMetric(float64((r.cpu()-start).Nanoseconds())/n, "redis-ns/request")
	b.ReportMetric(0, "ns/op")
}
