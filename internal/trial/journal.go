package trial

import (
	"strings"
	"sync"
)

// Journal is what has been written so far. Some may write it while others read. Its zero value is empty.
type Journal struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String returns all of it.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Count returns how often a text stands in it.
func (j *Journal) Count(text string) int { return strings.Count(j.String(), text) }
