package redisbackend

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// replicated asks for one replica's word before anything counts.
func replicated(c *Config) {
	c.Link.Replicas, c.Link.ReplicaTimeout = 1, 100*time.Millisecond
}

// replicaOf starts a server that follows another.
func replicaOf(t testing.TB, r *redisd.Server) *redisd.Server {
	t.Helper()
	replica := redisd.Run(t)
	host, port, _ := net.SplitHostPort(r.Addr)
	ask(t, replica, "REPLICAOF", host, port)
	trial.Until(t, "replicated", func() bool { return replica.Field("master_link_status") == "up" })
	return replica
}

func isDownOrUncertain(err error) bool {
	return errors.Is(err, semaphore.ErrDown) || errors.Is(err, semaphore.Uncertain(""))
}

func TestAGrantThatReplicasDoNotKnowOfIsGivenBack(t *testing.T) {
	r := redisd.Run(t)
	e := openEngine(t, r, replicated)
	replica := replicaOf(t, r)
	create(t, e, "k", 1)
	if got := one(e, semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: time.Hour}); got.Value == nil {
		t.Fatalf("with a replica: got %v, want a grant", got.Err)
	}
	w := wait(t, e, "b", time.Minute)
	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	if got := one(e, semaphore.Release{Key: "k", Holder: "a"}); got.Value != nil || !errors.Is(got.Err, semaphore.Uncertain("")) {
		t.Errorf("release without a replica: got %v, %v, want UNCERTAIN: it took effect, and may be lost", got.Value, got.Err)
	}
	if got := <-w.Done; got.Value != nil || !isDownOrUncertain(got.Err) {
		t.Errorf("hand-over without a replica: got %v, %v, want CLUSTERDOWN or UNCERTAIN", got.Value, got.Err)
	}
	if got := one(e, semaphore.Acquire{Key: "k", Holder: "c", Permits: 1, Lease: time.Hour}); got.Value != nil || !isDownOrUncertain(got.Err) {
		t.Errorf("grant without a replica: got %v, %v, want CLUSTERDOWN or UNCERTAIN", got.Value, got.Err)
	}
	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	trial.Until(t, "granted again", func() bool {
		return one(e, semaphore.Acquire{Key: "k", Holder: "d", Permits: 1}).Value != nil
	})
}
