// Package complete finds out what may stand at the end of an unfinished command line.
//
// It knows the grammar alone (a kong model): commands, flags, and values that are one of a few. Which
// semaphores or holders there are only a server knows: a value that names one has the tag
// complete:"semaphore", and At answers with that kind for the caller to look up.
//
// To add a kind, put it into the tag of the flag or argument, and look it up in
// cmd/semctl/completion.go.
package complete
