package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// walIndex is the WAL's record of its segments, made to survive that entries are taken out of the log
// again, as a follower must do with what a new leader does not know. The WAL then seals the segment
// that it was writing, but forgets to write its index; it cannot be opened any more. Here the index is
// written before the record says that the segment is sealed.
type walIndex struct {
	metadb.BoltMetaDB
	dir    string
	starts map[uint64]uint64 // of the indexes written here, by segment
}

// CommitState implements types.MetaStore.
func (x *walIndex) CommitState(state types.PersistentState) error {
	for i := range state.Segments {
		s := &state.Segments[i]
		if s.SealTime.IsZero() || s.IndexStart != 0 {
			continue
		}
		if _, written := x.starts[s.ID]; !written {
			start, err := writeIndex(filepath.Join(x.dir, segment.FileName(*s)), *s)
			if err != nil {
				return fmt.Errorf("write index of a log segment: %w", err)
			}
			x.starts[s.ID] = start
		}
		s.IndexStart = x.starts[s.ID]
	}
	return x.BoltMetaDB.CommitState(state)
}

// What a segment looks like: a header, and frames of a header (kind u8, length u32 at 4), which for an
// entry is followed by that many bytes, padded.
const (
	segmentHeader = 32
	segmentFrame  = 8 // size of a frame's header, and what its length is padded to
	offsetSize    = 4
)

// writeIndex writes where the entries of a segment begin at the end of its file, which was allocated
// with room for that, and returns where the index begins.
func writeIndex(path string, s types.SegmentInfo) (start uint64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	index, end, err := entryOffsets(f, int(s.MaxIndex-s.BaseIndex)+1)
	if err != nil {
		return 0, err
	}
	file, err := f.Stat()
	if err != nil {
		return 0, err
	}
	at := (file.Size() - int64(len(index))) &^ (segmentFrame - 1)
	if at <= end {
		return 0, fmt.Errorf("no room for it in %s", path)
	}
	if _, err := f.WriteAt(index, at); err != nil {
		return 0, err
	}
	return uint64(at), f.Sync()
}

// entryOffsets returns where the first count entries begin, as the index has it, and where the last frame
// ends that was looked at.
func entryOffsets(f io.ReadSeeker, count int) (index []byte, end int64, err error) {
	if _, err := f.Seek(segmentHeader, io.SeekStart); err != nil {
		return nil, 0, err
	}
	r := bufio.NewReader(f)
	end = segmentHeader
	for len(index) < count*offsetSize {
		var head [segmentFrame]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, 0, err
		}
		size := 0
		switch head[0] {
		case segment.FrameEntry:
			index = binary.LittleEndian.AppendUint32(index, uint32(end))
			length := int(binary.LittleEndian.Uint32(head[4:]))
			size = (length + segmentFrame - 1) &^ (segmentFrame - 1)
		case segment.FrameCommit:
		default:
			return nil, 0, fmt.Errorf("%d entries at %d, want %d", len(index)/offsetSize, end, count)
		}
		if _, err := r.Discard(size); err != nil {
			return nil, 0, err
		}
		end += int64(segmentFrame + size)
	}
	return index, end, nil
}
