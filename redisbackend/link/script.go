package link

// Script is a Lua script.
type Script struct {
	Name   string // for people
	Source string
	SHA    string // by which EVALSHA calls it
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
	Args   []string
}

// command is the call as Redis reads it.
func (c Call) command() []any {
	all := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	all = append(all, "evalsha", c.Script.SHA, len(c.Keys))
	for _, k := range c.Keys {
		all = append(all, k)
	}
	for _, a := range c.Args {
		all = append(all, a)
	}
	return all
}
