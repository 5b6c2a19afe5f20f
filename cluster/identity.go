package cluster

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// identity is what a data directory says of its node, in node.json. What is promised to others is
// written there before it is promised.
type identity struct {
	Format   int    `json:"format"`
	ID       string `json:"id"` // Raft's server id, made at random
	LogStore string `json:"log_store"`
	Formed   bool   `json:"formed"` // there is a log: if there is none, it was lost
	// Cluster is the id of the cluster that the node belongs to for ever, once it has anything of Raft's
	// on disk; before that, of the one that it is reserved for. Empty: none, or one without peers.
	Cluster string `json:"cluster,omitempty"`
	// Founder has reserved the node for the cluster that it is forming, or adds it to an existing one.
	Founder *place `json:"founder,omitempty"`
	Member  bool   `json:"member,omitempty"`  // the cluster was once known to count this node in
	Removed bool   `json:"removed,omitempty"` // and does not any more, by an operator's word
	// Recovering: the directory is being made into a cluster of one.
	Recovering bool `json:"recovering,omitempty"`
	// Restoring: the directory was made to restore a state into it, which is not there yet.
	Restoring bool `json:"restoring,omitempty"`
}

// place is a node and where it is reached.
type place struct {
	Node    string `json:"node"`
	Address string `json:"address"`
}

const (
	identityFile = "node.json"
	formatNow    = 1
)

// errRemoved is why a node that was removed stops, and does not start again.
var errRemoved = errors.New("this node was removed from the cluster by SEM.NODE REMOVE; start it on an empty directory to join again")

// loadIdentity reads the directory's identity, or gives it one. The caller holds the directory's lock.
func loadIdentity(cfg Config) (identity, error) {
	dir, logStore := cfg.DataDir, cfg.LogStore
	id, err := peekIdentity(dir)
	switch {
	case err != nil:
		return identity{}, err
	case id.ID == "":
		id = identity{Format: formatNow, ID: randomID(), LogStore: logStore, Restoring: cfg.Restore != ""}
		return id, id.save(filepath.Join(dir, identityFile))
	case id.LogStore != logStore:
		return identity{}, fmt.Errorf("%s was made with --log-store %s and cannot be opened with %s", dir, id.LogStore, logStore)
	case id.Removed:
		return identity{}, fmt.Errorf("%s: %w", dir, errRemoved)
	}
	return id, nil
}

// peekIdentity reads a directory's identity. One that has none yet is no error: its id is empty.
func peekIdentity(dir string) (identity, error) {
	path := filepath.Join(dir, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, fmt.Errorf("read the identity in the data directory: %w", err)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return identity{}, fmt.Errorf("read identity %s: %w", path, err)
	}
	switch {
	case id.Format != formatNow:
		return identity{}, fmt.Errorf("%s: data format %d; this version reads format %d", path, id.Format, formatNow)
	case id.ID == "":
		return identity{}, fmt.Errorf("%s: no id", path)
	}
	return id, nil
}

func (id identity) save(path string) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := writeDurably(path, append(data, '\n')); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// refuseForeign refuses a directory that holds files but no identity: it is somebody else's.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	foreign := ""
	for _, e := range entries {
		switch e.Name() {
		case identityFile:
			return nil
		case identityFile + ".new", stableFile, "lost+found": // of a first start that was cut short
		default:
			foreign = e.Name()
		}
	}
	if foreign != "" {
		return fmt.Errorf("data directory %s is not empty and not ours (it holds %q)", dir, foreign)
	}
	return nil
}

// writeDurably replaces a file as a whole: after a crash it is the old one or the new one.
func writeDurably(path string, data []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

func randomID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// newIncarnation names one life of a node's process.
func newIncarnation() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:])
		if n := binary.BigEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}
