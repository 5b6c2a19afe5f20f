package script

import (
	"context"
	"fmt"
	"strings"
	"sync"
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

// connections are how many have a call under way at a time, each on a semaphore of its own.
const connections = 50

// BenchmarkRequests measures acquire and release: sent one by one as the simplest of scripts, and with so
// many requests in each call.
func BenchmarkRequests(b *testing.B) {
	b.Run("simplest", benchmarkSimplest)
	for _, ops := range []int{1, 16, 50} {
		b.Run(fmt.Sprintf("ops=%d", ops), func(b *testing.B) { benchmarkServe(b, ops) })
	}
}

func benchmarkSimplest(b *testing.B) {
	r := newRig(b)
	ctx := context.Background()
	acquire, release := redis.NewScript(simplest), redis.NewScript(simplestRelease)
	for _, s := range []*redis.Script{acquire, release} {
		if err := s.Load(ctx, r.redis).Err(); err != nil {
			b.Fatal(err)
		}
	}
	r.measure(b, 2, func(key string, r *rig) func(n int) error {
		keys := []string{r.lib.layout.Permits(key), r.lib.layout.Holders(key)}
		return func(n int) error {
			if err := r.redis.EvalSha(ctx, acquire.Hash(), keys, holder(n, 0), 30000).Err(); err != nil {
				return err
			}
			return r.redis.EvalSha(ctx, release.Hash(), keys, holder(n, 0)).Err()
		}
	})
}

func benchmarkServe(b *testing.B, ops int) {
	r := newRig(b)
	if err := r.redis.ScriptLoad(context.Background(), r.lib.serve.Source).Err(); err != nil {
		b.Fatal(err)
	}
	r.measure(b, 2*ops, func(key string, r *rig) func(n int) error {
		return func(n int) error {
			acquires, releases := &Step{}, &Step{}
			for i := range ops {
				t := semaphore.Ticket{Incarnation: r.server, Number: uint64(n*ops + i + 1)}
				acquires.Ops = append(acquires.Ops, Op{Request: semaphore.Acquire{Key: key, Holder: holder(n, i), Permits: 1}, Ticket: t})
				releases.Ops = append(releases.Ops, Op{Request: semaphore.Release{Key: key, Holder: holder(n, i)}, Ticket: t})
			}
			if _, err := r.try(key, r.stamp(), acquires); err != nil {
				return err
			}
			_, err := r.try(key, r.stamp(), releases)
			return err
		}
	})
}

func holder(n, i int) string { return fmt.Sprintf("pod-7f9c-%05d-%02d", n, i) }

// measure has each connection do its work again and again, each on its own semaphore and as a server of its
// own, and says what a request cost: on the whole, and of Redis's processor.
func (r *rig) measure(b *testing.B, requests int, work func(key string, r *rig) func(n int) error) {
	var doers []func(int) error
	for i := range connections {
		key, own := fmt.Sprintf("k%d", i), *r
		own.server = uint64(i + 1)
		own.create(key, 100)
		doers = append(doers, work(key, &own))
	}
	start := r.cpu()
	for n := 0; b.Loop(); n++ {
		var g sync.WaitGroup
		for _, do := range doers {
			g.Go(func() {
				if err := do(n); err != nil {
					b.Error(err)
				}
			})
		}
		g.Wait()
	}
	all := float64(b.N * requests * connections)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/all, "ns/request")
	b.ReportMetric(float64((r.cpu()-start).Nanoseconds())/all, "redis-ns/request")
	b.ReportMetric(0, "ns/op")
	for i := range connections {
		r.books(fmt.Sprintf("k%d", i), 100, 0)
	}
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
