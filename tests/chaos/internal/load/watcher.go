package load

import (
	"context"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/fleet"
	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// lookEvery is the pause between two looks.
const lookEvery = 60 * time.Millisecond

// Watcher looks at lines and books through one node, and whether the node leads. It belongs to one
// goroutine.
type Watcher struct {
	*Caller
	Node       int
	Semaphores []Semaphore
}

// Run goes on until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	defer w.Close()
	for i := 0; ctx.Err() == nil; i++ {
		if role, term, err := fleet.Role(w.Addrs[w.Node-1]); err == nil && role == "leader" {
			w.History.SawLeader(w.Node, term)
		}
		w.Turn(w.Node)
		s := w.Semaphores[i%len(w.Semaphores)]
		w.Ask(history.Op{Kind: history.Waiters, Key: s.Key})
		if i%3 == 0 {
			w.Turn(w.Node)
			w.Ask(history.Op{Kind: history.Count, Key: s.Key})
		}
		<-time.After(lookEvery)
	}
}
