package redisbackend

import (
	"testing"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/semaphore/semtest"
	"github.com/semserver/semserver/tests/redisd"
)

func TestRedisModeIsABackend(t *testing.T) {
	bounds := semtest.Bounds{Capacity: script.MaxCapacity, Permits: script.MaxPermits}
	semtest.RunWithin(t, bounds, func(t *testing.T) semaphore.Backend { return openEngine(t, redisd.Run(t)) })
}

// spread are several servers of one Redis, behind something that sends each semaphore's clients to one.
type spread []*Engine

func (s spread) of(key string) *Engine { return s[len(key)%len(s)] }

func (s spread) Do(requests []semaphore.Request) []semaphore.Reply {
	var replies []semaphore.Reply
	for _, r := range requests {
		replies = append(replies, s.of(r.Semaphore()).Do([]semaphore.Request{r})...)
	}
	return replies
}

func (s spread) GiveBack(key string, g *semaphore.Grant) { s.of(key).GiveBack(key, g) }

func TestSeveralServersAreABackend(t *testing.T) {
	bounds := semtest.Bounds{Capacity: script.MaxCapacity, Permits: script.MaxPermits}
	semtest.RunWithin(t, bounds, func(t *testing.T) semaphore.Backend { return spread(engines(t, 3)) })
}
