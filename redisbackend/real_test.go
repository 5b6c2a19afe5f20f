package redisbackend

import (
	"testing"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// openEngine is an engine on a Redis, until the end of the test.
func openEngine(t testing.TB, r *redisd.Server, change ...func(*Config)) *Engine {
	t.Helper()
	target, err := link.ParseURL("redis://" + r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(target)
	for _, c := range change {
		c(&cfg)
	}
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// one carries out one request.
func one(e *Engine, r semaphore.Request) semaphore.Reply {
	return e.Do([]semaphore.Request{r})[0]
}

func TestSmoke(t *testing.T) {
	e := openEngine(t, redisd.Run(t))
	r := one(e, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Create: true, Capacity: 1})
	t.Logf("%+v %v", r.Value, r.Err)
	r = one(e, semaphore.Acquire{Key: "k", Holder: "b", Permits: 1, Wait: time.Minute})
	t.Logf("%+v %v", r.Value, r.Err)
	w := r.Value.(*semaphore.Waiting)
	r = one(e, semaphore.Release{Key: "k", Holder: "a"})
	t.Logf("%+v %v", r.Value, r.Err)
	r = <-w.Done
	t.Logf("%+v %v", r.Value, r.Err)
}
