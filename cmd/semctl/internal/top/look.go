package top

import (
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// Look is what was seen of all servers at one time.
type Look struct {
	At         time.Time
	Semaphores []Semaphore
	Cut        bool // there are more semaphores than are looked at
	Nodes      []Node
	Away       []remote.Reach // the addresses that did not answer
}

// Node is a node as the cluster lists it.
type Node struct {
	Label, Address, Role string
}

// Semaphore is what was seen of one semaphore.
type Semaphore struct {
	Name                       string
	Capacity, InUse, Available int64
	Excess, Quarantined        int64
	Holders, Waiters           int64
	OldestWait                 time.Duration
	NextExpiry                 time.Duration // negative: no lease will end
	Settings                   remote.Fields // everything that the server told

	totals totals
	Since  Since
}

// totals are counters that only grow.
type totals struct {
	grants, waits, expirations int64
	waited                     time.Duration
}

// Since is what happened between two looks.
type Since struct {
	Known       bool
	Grants      float64       // per second
	MeanWait    time.Duration // of the waits that ended; 0: none did
	Expirations int64
}

// seen reads what a server tells of a semaphore.
func seen(f remote.Fields) Semaphore {
	ms := func(name string) time.Duration { return time.Duration(f.Number(name)) * time.Millisecond }
	return Semaphore{
		Name: f.Text("name"), Capacity: f.Number("capacity"), InUse: f.Number("in_use"), Available: f.Number("available"),
		Excess: f.Number("excess"), Quarantined: f.Number("quarantined"),
		Holders: f.Number("holders"), Waiters: f.Number("waiters"),
		OldestWait: ms("oldest_wait_ms"), NextExpiry: ms("next_expiry_ms"), Settings: f,
		totals: totals{
			grants:      f.Number("grants_immediate") + f.Number("grants_waited"),
			waits:       f.Number("grants_waited") + f.Number("wait_timeouts"),
			expirations: f.Number("expirations"),
			waited:      ms("wait_ms_total"),
		},
	}
}

// compare fills in what has happened since the look before.
func (l *Look) compare(before Look) {
	passed := l.At.Sub(before.At).Seconds()
	if before.At.IsZero() || passed <= 0 {
		return
	}
	old := make(map[string]totals, len(before.Semaphores))
	for _, s := range before.Semaphores {
		old[s.Name] = s.totals
	}
	for i := range l.Semaphores {
		s := &l.Semaphores[i]
		was, ok := old[s.Name]
		// A counter that fell belongs to another semaphore of that name.
		if !ok || s.totals.grants < was.grants || s.totals.waits < was.waits || s.totals.expirations < was.expirations {
			continue
		}
		s.Since = Since{
			Known:       true,
			Grants:      float64(s.totals.grants-was.grants) / passed,
			Expirations: s.totals.expirations - was.expirations,
		}
		if waits := s.totals.waits - was.waits; waits > 0 {
			s.Since.MeanWait = (s.totals.waited - was.waited) / time.Duration(waits)
		}
	}
}

// sums adds up all semaphores.
func (l *Look) sums() (held, waiting int64) {
	for _, s := range l.Semaphores {
		held += s.InUse
		waiting += s.Waiters
	}
	return held, waiting
}
