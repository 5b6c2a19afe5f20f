package redismode

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/redisd"
)

const (
	cuts     = 30
	cutEvery = 50 * time.Millisecond
)

// TestConnectionsThatAreCutUnderLoadAreNothingToClients has Redis drop the connections of two servers, those
// for calls and those for messages, again and again, in the middle of whatever they carry.
func TestConnectionsThatAreCutUnderLoadAreNothingToClients(t *testing.T) {
	t.Parallel()
	const capacity, clients = 3, 12
	r := redisd.Run(t)
	nodes := []*node.Node{serve(t, r), serve(t, r)}
	dial(t, nodes[0].Addr).want("OK", "SEM.CREATE", "k", capacity)
	held := &room{T: t, capacity: capacity}
	var over atomic.Bool
	var ours side
	var all sync.WaitGroup
	for n := range clients {
		at, other := dial(t, nodes[n%2].Addr).Conn, dial(t, nodes[(n+1)%2].Addr).Conn
		all.Go(func() {
			for i := 0; !over.Load(); i++ {
				holder := fmt.Sprint("w", n, ".", i)
				began := time.Now()
				if _, err := acquire(at, holder); err != nil {
					t.Error(err)
					return
				}
				ours.got(time.Since(began))
				held.enter()
				<-time.After(time.Millisecond) // the task
				held.leave()
				if err := release(other, holder); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range cuts {
		<-time.After(cutEvery) // they are in the middle of something
		ask(t, r, "CLIENT", "KILL", "TYPE", "pubsub")
		ask(t, r, "CLIENT", "KILL", "TYPE", "normal")
	}
	over.Store(true)
	all.Wait()
	t.Logf("%d grants over %d cuts of all connections, at most %d at once; nobody waited for more than %v", ours.grants.Load(), cuts,
		held.most.Load(), time.Duration(ours.longest.Load()))
	if got := ours.grants.Load(); got < cuts {
		t.Errorf("grants: got %d, want it to go on between the cuts", got)
	}
	balances(t, r, capacity, 0)
}
