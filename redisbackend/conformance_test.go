package redisbackend

import (
	"testing"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/semaphore/semtest"
	"github.com/semserver/semserver/tests/redisd"
)

func TestRedisModeIsABackend(t *testing.T) {
	semtest.Run(t, func(t *testing.T) semaphore.Backend { return openEngine(t, redisd.Run(t)) })
}
