package link

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua script. Make one with NewScript.
type Script struct {
	Name   string
	source string
	hash   string
}

// NewScript is the script with this text; the name is for people.
func NewScript(name, source string) *Script {
	sum := sha1.Sum([]byte(source)) // what Redis calls it by
	return &Script{Name: name, source: source, hash: hex.EncodeToString(sum[:])}
}

// Call is one call of a script. Its keys, of which it has at least one, share a slot where the Redis is
// a Cluster.
//
// A script may be run by Redis long after it was sent, and its effect may be lost with the server that
// ran it. So it carries a time after which it does nothing, and a call with the same arguments finds
// what an earlier one has done. It looks at the types of its keys before it writes.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any // strings, byte slices and integers
}

// command is the call as Redis reads it.
func (c Call) command() []any {
	all := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	all = append(all, "evalsha", c.Script.hash, len(c.Keys))
	for _, k := range c.Keys {
		all = append(all, k)
	}
	return append(all, c.Args...)
}
