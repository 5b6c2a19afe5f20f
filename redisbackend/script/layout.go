package script

import (
	"fmt"
	"strings"
)

// Tagging says when names are wrapped in braces, so that all keys of a semaphore share a slot of a
// Redis Cluster.
type Tagging string

// The ways of tagging.
const (
	TagAuto   Tagging = "auto" // on a Redis Cluster
	TagAlways Tagging = "always"
	TagNever  Tagging = "never"
)

// The endings of the keys of a semaphore. No other key of ours ends so.
const (
	permitsEnd = ":permits"
	holdersEnd = ":holders"
	metaEnd    = ":meta"
	grantsEnd  = ":grants"
	slotsEnd   = ":slots"
	endsEnd    = ":ends"
	wakeEnd    = ":wake" // a channel
)

// Layout names the keys. It never changes and may be used by many goroutines.
type Layout struct {
	prefix  string
	tagged  bool
	cluster bool
	tags    []string // by slot, on a Redis Cluster: a tag that falls there; none where the prefix has a tag
}

// NewLayout returns the layout for a prefix. On a Redis Cluster it refuses what could not work there.
func NewLayout(prefix string, tagging Tagging, cluster bool) (*Layout, error) {
	l := &Layout{prefix: prefix, cluster: cluster}
	switch tagging {
	case TagAuto:
		l.tagged = cluster
	case TagAlways:
		l.tagged = true
	case TagNever:
	default:
		return nil, fmt.Errorf("hash tags must be %s, %s or %s, not %q", TagAuto, TagAlways, TagNever, tagging)
	}
	if !cluster {
		return l, nil
	}
	if pinned(prefix) {
		return l, nil
	}
	if strings.Contains(prefix, "{") {
		return nil, fmt.Errorf("on a Redis Cluster a prefix with a brace must hold a whole hash tag, as {app}: does, and %q does not", prefix)
	}
	if !l.tagged {
		return nil, fmt.Errorf("on a Redis Cluster the keys of a semaphore must share a slot; with hash tags %s they do not", tagging)
	}
	l.tags = tagOfEachSlot()
	return l, nil
}

// pinned says that a prefix holds a hash tag, so that all keys fall into one slot.
func pinned(prefix string) bool { return Slot(prefix+"x") == Slot(prefix+"y") }

// keys are the KEYS of the scripts that move one semaphore, in their order.
func (l *Layout) keys(name string) []string {
	stem := l.stem(name)
	return []string{
		stem + permitsEnd, stem + holdersEnd, stem + metaEnd, stem + grantsEnd, stem + slotsEnd, stem + endsEnd,
	}
}

// keysAndRegistry are the KEYS of the scripts that may make or remove a semaphore.
func (l *Layout) keysAndRegistry(name string) []string {
	k := l.keys(name)
	return append(k, l.registryOf(k[0]))
}

// stem is what the keys of a semaphore begin with.
func (l *Layout) stem(name string) string {
	if !l.tagged {
		return l.prefix + name
	}
	return l.prefix + "{" + tagSafe(name) + "}"
}

// Permits and Holders are the two public keys of a semaphore: the List and the ZSET.
func (l *Layout) Permits(name string) string { return l.stem(name) + permitsEnd }

// Holders is the key of the ZSET.
func (l *Layout) Holders(name string) string { return l.stem(name) + holdersEnd }

// Semaphore returns the name of the semaphore that a public key or its meta belongs to. False: the key
// is not one of these.
func (l *Layout) Semaphore(key string) (string, bool) {
	rest, ours := strings.CutPrefix(key, l.prefix)
	if !ours {
		return "", false
	}
	for _, end := range []string{permitsEnd, holdersEnd, metaEnd} {
		name, found := strings.CutSuffix(rest, end)
		if found {
			return l.unwrap(name)
		}
	}
	return "", false
}

func (l *Layout) unwrap(name string) (string, bool) {
	if !l.tagged {
		return name, name != ""
	}
	if len(name) < 3 || name[0] != '{' || name[len(name)-1] != '}' {
		return "", false
	}
	return tagUnsafe(name[1 : len(name)-1]), true
}

// Match is the pattern for SCAN that finds the keys of all semaphores, and others.
func (l *Layout) Match() string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`).Replace(l.prefix) + "*"
}

// Publish is the command that scripts publish with.
func (l *Layout) Publish() string {
	if l.cluster {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Channel is where the messages about a semaphore are published: on a Redis Cluster one channel for
// each, to be subscribed to with SSUBSCRIBE while it is of interest; elsewhere one for all.
func (l *Layout) Channel(name string) string {
	if l.cluster {
		return l.stem(name) + wakeEnd
	}
	return l.prefix + wakeEnd
}

// registryOf is the registry that a semaphore with this key is named in.
func (l *Layout) registryOf(key string) string {
	if len(l.tags) == 0 {
		return l.registry(0)
	}
	return l.registry(Slot(key))
}

// registries is how many there may be: on a Redis Cluster each slot has its own, because a script
// reaches only keys of one slot.
func (l *Layout) registries() int { return max(1, len(l.tags)) }

func (l *Layout) registry(slot int) string {
	if len(l.tags) == 0 {
		return l.prefix + ":registry"
	}
	return l.prefix + "{" + l.tags[slot] + "}:registry"
}
