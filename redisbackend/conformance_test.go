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
