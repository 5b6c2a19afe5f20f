package link

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/tests/redisd"
)

// callers are how many call at once, each of whom waits for its answer.
var callers = []int{1, 16, 50, 800}

// share has n goroutines do b.N things.
func share(b *testing.B, n int, do func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	for range n {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				do()
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkLink sends script calls through lanes.
func BenchmarkLink(b *testing.B) {
	s := redisd.Run(b)
	for _, n := range callers {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := open(b, options(b, "redis://"+s.Addr))
			share(b, n, func() {
				if r := <-send(l, increment("n")); r.err != nil {
					b.Error(r.err)
				}
			})
		})
	}
}

// BenchmarkPool sends the same calls through a plain pool of 50 connections.
func BenchmarkPool(b *testing.B) {
	s := redisd.Run(b)
	c := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 50, MaxRetries: -1, Protocol: 2})
	defer c.Close()
	ctx := context.Background()
	must(b, c.ScriptLoad(ctx, add.Source).Err())
	for _, n := range callers {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			share(b, n, func() {
				if err := c.EvalSha(ctx, add.SHA, []string{"n"}, "1").Err(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}
