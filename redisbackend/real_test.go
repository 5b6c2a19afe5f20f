package redisbackend

import (
	"testing"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// openEngine is an engine on a Redis, until the end of the test.
func openEngine(t testing.TB, r *redisd.Server, change ...func(*Config)) *Engine {
	t.Helper()
	return openAt(t, "redis://"+r.Addr, change...)
}

// one carries out one request.
func one(e *Engine, r semaphore.Request) semaphore.Reply {
	return e.Do([]semaphore.Request{r})[0]
}
