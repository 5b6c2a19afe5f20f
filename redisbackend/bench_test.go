package redisbackend

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// BenchmarkAcquireAndRelease is what clients get who each acquire and release in turn.
func BenchmarkAcquireAndRelease(b *testing.B) {
	for _, c := range []struct{ clients, semaphores, run int }{{1, 1, 1}, {50, 1, 1}, {50, 16, 1}, {50, 1, 16}, {50, 50, 16}} {
		b.Run(fmt.Sprintf("%d clients, %d semaphores, %d at once", c.clients, c.semaphores, c.run), func(b *testing.B) {
			e := openEngine(b, redisd.Run(b))
			var ids atomic.Int64
			b.SetParallelism(c.clients / 2)
			b.RunParallel(func(pb *testing.PB) {
				id := ids.Add(1)
				key := fmt.Sprint("k", id%int64(c.semaphores))
				var run []semaphore.Request
				for i := range c.run {
					holder := fmt.Sprint(id, ".", i/2)
					if c.run > 1 && i%2 == 1 {
						run = append(run, semaphore.Release{Key: key, Holder: holder})
					} else {
						run = append(run, gate(key, holder, 10_000, 0))
					}
				}
				release := []semaphore.Request{semaphore.Release{Key: key, Holder: fmt.Sprint(id, ".", 0)}}
				for n := 0; pb.Next(); n++ {
					requests := run
					if c.run == 1 && n%2 == 1 {
						requests = release
					}
					for _, r := range e.Do(requests) {
						if r.Err != nil || r.Value == nil {
							b.Errorf("got %v, %v", r.Value, r.Err)
							return
						}
					}
				}
			})
			b.ReportMetric(float64(b.N*c.run)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
