package fsm

// The versions of entries and snapshots that this package reads and writes. A new version is written
// only when every node of a cluster reads it.
const (
	OldestVersion = entryVersion
	NewestVersion = entryVersion
)
