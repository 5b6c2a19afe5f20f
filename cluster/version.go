package cluster

import (
	"fmt"

	"github.com/semserver/semserver/fsm"
)

// versions is the range of entry versions that a node reads. A snapshot's version goes with them.
type versions struct {
	Oldest int `json:"oldest"`
	Newest int `json:"newest"`
}

// readable is what this node reads.
func readable() versions { return versions{fsm.OldestVersion, fsm.NewestVersion} }

// followers counts the members that can follow one of them: there is a version that both read.
func followers(members map[string]versions, leader string) int {
	n, own := 0, members[leader]
	for _, v := range members {
		if max(v.Oldest, own.Oldest) <= min(v.Newest, own.Newest) {
			n++
		}
	}
	return n
}

// written is the version of the entries that a leader writes: the newest that it knows and every member
// reads, so that a cluster whose nodes are replaced one by one goes over to a new version when the last
// of them can read it. A member that reads no version that the leader writes is an error: the leader
// must not lead it.
func written(members map[string]versions) (int, error) {
	version := fsm.NewestVersion
	for _, v := range members {
		version = min(version, v.Newest)
	}
	for node, v := range members {
		if version < v.Oldest || version < fsm.OldestVersion {
			return 0, fmt.Errorf("node %s reads versions %d to %d of entries, this node writes %d to %d", node, v.Oldest, v.Newest, fsm.OldestVersion, fsm.NewestVersion)
		}
	}
	return version, nil
}
