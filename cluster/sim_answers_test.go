package cluster

import (
	"math"

	"github.com/semserver/semserver/semaphore"
)

// question is a request that was under way when its node stopped leading.
type question struct {
	key  string
	run  *run
	node *simNode
	life *machine // of the node: a later one knows nothing of it
}

// close lets every node lead once more. Then whoever asked has been answered, unless the process that
// was asked is gone, and has been told of the grant if there is one.
func (s *simulation) close() {
	for _, n := range s.nodes {
		s.openDelay()
		s.elect(n, math.MaxInt)
		s.stable()
		s.ask(semaphore.Inspect{Key: "none"}) // behind all that it has to propose again
	}
	for _, q := range s.open {
		if q.life != q.node.m {
			continue
		}
		switch q.run.state.Load() {
		case pending:
			s.t.Fatalf("the request for %s was never answered", q.key)
		case abandoned:
			continue // a snapshot was installed over it: told that its outcome is unknown
		}
		r, _ := s.ask(semaphore.Inspect{Key: q.key})
		info, exists := r.replies[0].Value.(*semaphore.Info)
		if !exists || info.Holders == 0 {
			continue
		}
		if g, told := q.run.replies[0].Value.(*semaphore.Grant); !told || g.Token != info.LastToken {
			s.t.Fatalf("token %d of %s is held, and the client was told %v", info.LastToken, q.key, q.run.replies[0])
		}
	}
}
