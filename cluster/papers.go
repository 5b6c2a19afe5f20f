package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// papers are the identity of a running node. Anybody may read it at any time.
type papers struct {
	ID  string // Raft's server id: the part that never changes
	dir string

	saving sync.Mutex // held while the file is written: whoever wants it needs that file
	latest atomic.Pointer[identity]
	spoken bool // a peer was admitted to speak for the cluster: in this life, the node does not leave it
}

func newPapers(dir string, id identity) *papers {
	p := &papers{ID: id.ID, dir: dir}
	p.latest.Store(&id)
	return p
}

// read returns the identity as it is on disk.
func (p *papers) read() identity { return *p.latest.Load() }

// change writes a changed identity to disk, unless the change fails or changes nothing. When change
// has returned nil, the disk says so.
func (p *papers) change(by func(*identity) error) error {
	p.saving.Lock()
	defer p.saving.Unlock()
	was := p.read()
	id := was
	if err := by(&id); err != nil {
		return err
	}
	if id == was {
		return nil
	}
	if p.spoken && id.Cluster != was.Cluster {
		return fmt.Errorf("the node has begun to take part in cluster %s: restart it to let it leave", was.Cluster)
	}
	if err := id.save(filepath.Join(p.dir, identityFile)); err != nil {
		return err
	}
	p.latest.Store(&id)
	return nil
}

// speak admits a peer that speaks for a cluster, if it is this node's own, and ties the node to it:
// what the peer says may arrive at any time from now on.
func (p *papers) speak(cluster string) error {
	p.saving.Lock()
	defer p.saving.Unlock()
	switch id := p.read(); {
	case id.Removed:
		return errRemoved
	case id.Cluster == "":
		return errors.New("this node belongs to no cluster yet")
	case id.Cluster != cluster:
		return fmt.Errorf("this node belongs to cluster %s, not to %q", id.Cluster, cluster)
	}
	p.spoken = true
	return nil
}
