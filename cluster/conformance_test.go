package cluster

import (
	"testing"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/semaphore/semtest"
)

func TestOneNodeIsABackend(t *testing.T) {
	semtest.Run(t, func(t *testing.T) semaphore.Backend {
		n := openNode(t, testConfig(t.TempDir()))
		t.Cleanup(func() { closeNode(t, n) })
		return n
	})
}
