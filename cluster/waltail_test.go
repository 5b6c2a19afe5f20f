package cluster

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

// walOf opens the log in a directory for one life.
func walOf(t *testing.T, dir string, use func(raft.LogStore)) {
	t.Helper()
	w, err := openWAL(dir, raftLogger(Config{}.complete().Logger))
	if err != nil {
		t.Fatal(err)
	}
	log, err := w.cached()
	if err != nil {
		t.Fatal(err)
	}
	use(log)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func store(t *testing.T, log raft.LogStore, term, from, to uint64) {
	t.Helper()
	for i := from; i <= to; i++ {
		entry := &raft.Log{Index: i, Term: term, Data: fmt.Appendf(nil, "%d in %d %*d", i, term, int(i%40), i)}
		if err := log.StoreLogs([]*raft.Log{entry}); err != nil {
			t.Fatal(err)
		}
	}
}

func wantTerms(t *testing.T, log raft.LogStore, terms map[uint64][2]uint64) {
	t.Helper()
	for term, span := range terms {
		for i := span[0]; i <= span[1]; i++ {
			var got raft.Log
			if err := log.GetLog(i, &got); err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
			if want := fmt.Sprintf("%d in %d %*d", i, term, int(i%40), i); got.Term != term || string(got.Data) != want {
				t.Errorf("entry %d: got %q of term %d, want %q of term %d", i, got.Data, got.Term, want, term)
			}
		}
	}
}

// A follower takes entries out of its log again when a new leader does not know them.
func TestLogFromWhichEntriesWereTakenCanBeOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	walOf(t, dir, func(log raft.LogStore) {
		store(t, log, 1, 1, 50)
		if err := log.DeleteRange(41, 50); err != nil {
			t.Fatal(err)
		}
		store(t, log, 2, 41, 60)
	})
	walOf(t, dir, func(log raft.LogStore) {
		wantTerms(t, log, map[uint64][2]uint64{1: {1, 40}, 2: {41, 60}})
		if err := log.DeleteRange(30, 60); err != nil { // over two segments
			t.Fatal(err)
		}
		store(t, log, 3, 30, 35)
		if err := log.DeleteRange(35, 35); err != nil {
			t.Fatal(err)
		}
		wantTerms(t, log, map[uint64][2]uint64{1: {1, 29}, 3: {30, 34}})
	})
	walOf(t, dir, func(log raft.LogStore) {
		wantTerms(t, log, map[uint64][2]uint64{1: {1, 29}, 3: {30, 34}})
		store(t, log, 4, 35, 45)
		if err := log.DeleteRange(1, 20); err != nil { // what a snapshot covers
			t.Fatal(err)
		}
		wantTerms(t, log, map[uint64][2]uint64{1: {21, 29}, 3: {30, 34}, 4: {35, 45}})
	})
	walOf(t, dir, func(log raft.LogStore) {
		wantTerms(t, log, map[uint64][2]uint64{1: {21, 29}, 3: {30, 34}, 4: {35, 45}})
	})
}
