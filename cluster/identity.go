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

// identity is what a data directory says of itself, in node.json. It is written once, before the
// first entry.
type identity struct {
	Format   int    `json:"format"`
	ID       string `json:"id"` // Raft's server id, made at random
	LogStore string `json:"log_store"`
	Formed   bool   `json:"formed"`            // there is a log: if there is none, it was lost
	Cluster  string `json:"cluster,omitempty"` // the cluster that the log belongs to; empty: none yet, or one without peers
}

const (
	identityFile = "node.json"
	formatNow    = 1
)

// loadIdentity reads the directory's identity, or gives it one. The caller holds the directory's lock.
func loadIdentity(dir, logStore string) (identity, error) {
	path := filepath.Join(dir, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newIdentity(path, logStore)
	}
	if err != nil {
		return identity{}, fmt.Errorf("read identity: %w", err)
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
	case id.LogStore != logStore:
		return identity{}, fmt.Errorf("%s was made with --log-store %s and cannot be opened with %s", dir, id.LogStore, logStore)
	}
	return id, nil
}

func newIdentity(path, logStore string) (identity, error) {
	id := identity{Format: formatNow, ID: randomID(), LogStore: logStore}
	return id, id.save(path)
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

// formed notes in the directory that its log has been begun.
func (id *identity) formed(dir string) error {
	if id.Formed {
		return nil
	}
	id.Formed = true
	return id.save(filepath.Join(dir, identityFile))
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
