package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/semserver/semserver/tests/internal/node"
)

// TestTranscriptsThroughSeveralNodes plays the transcripts again, one after the other on one cluster: with
// all clients at one follower, and on another cluster with each client at another node.
func TestTranscriptsThroughSeveralNodes(t *testing.T) {
	files, err := filepath.Glob("transcript/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: got %v, %v, want some", files, err)
	}
	t.Run("follower", func(t *testing.T) {
		t.Parallel()
		s := form(t)
		s.playAll(files, s.followers()[:1])
	})
	t.Run("apart", func(t *testing.T) {
		t.Parallel()
		s := form(t)
		apart := slices.DeleteFunc(slices.Clone(files), func(file string) bool { return speaksOfConnections(t, file) })
		s.playAll(apart, append(s.followers(), s.leader()))
	})
}

func (s *several) playAll(files []string, at []int) {
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if name != "node" { // which tells of a node that is alone
			s.Run(name, func(t *testing.T) { s.play(t, file, at) })
		}
	}
}

// speaksOfConnections is whether a client of a transcript names the connection of another, which only
// the node that has it knows.
func speaksOfConnections(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "CLIENT ID")
}

// play plays a transcript with clients at these nodes in turn, and deletes what it leaves.
func (s *several) play(t *testing.T, file string, at []int) {
	var nodes []*node.Node
	for _, i := range at {
		nodes = append(nodes, s.members[i].node)
	}
	play(t, file, 2, nodes...)
	look := dial(t, nodes[0])
	page, ok := look.do("SEM.SCAN", 0, "COUNT", 1000).([]any)
	if !ok || len(page) != 2 || page[0] != "0" {
		t.Fatalf("SEM.SCAN: got %v, want all keys", page)
	}
	for _, key := range page[1].([]any) {
		look.want(1, "SEM.DELETE", key, "FORCE")
	}
}

func TestWaiterAtOneNodeIsGrantedWhatIsReleasedAtAnother(t *testing.T) {
	t.Parallel()
	s := form(t)
	for _, from := range s.running() {
		for _, to := range s.running() {
			key := fmt.Sprint("from ", from, " to ", to)
			holder, waiter := s.dial(from), s.dial(to)
			holder.want("OK", "SEM.CREATE", key, 1)
			first := holder.acquire(key, "HOLDER", "first")
			waiter.send("SEM.ACQUIRE", key, "HOLDER", "second", "WAIT", 600_000)
			joined(t, holder, key, 1)
			holder.want(1, "SEM.RELEASE", key, "first")
			if second := waiter.granted(); second.token <= first.token || second.slot != first.slot {
				t.Errorf("%s: got %+v, want a larger token than %d, in slot %d", key, second, first.token, first.slot)
			}
		}
	}
}
