package server

import "github.com/semserver/semserver/semaphore"

// maxPattern is the longest glob that is accepted.
const maxPattern = semaphore.MaxName

const globWords = maxPattern/64 + 1

// glob is a compiled pattern in Redis's syntax: * ? [a-z] [^a-z] and \ before a literal.
//
// It is matched by simulating all its states at once, as bits, so the time is proportional to the
// text for every pattern; backtracking would let a SCAN with many stars burn a core.
type glob struct {
	size  int               // steps, without the stars
	words int               // words in use
	on    map[byte]*globSet // the steps that a byte may take
	any   globSet           // the steps that every byte may take
	stay  globSet           // the places where a star lets any byte pass
}

type globSet [globWords]uint64

func (s *globSet) add(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s *globSet) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// compileGlob prepares a pattern of at most maxPattern bytes.
func compileGlob(pattern string) *glob {
	g := &glob{on: map[byte]*globSet{}}
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; {
		case c == '*':
			g.stay.add(g.size)
			i++
			continue
		case c == '?':
			g.any.add(g.size)
			i++
		case c == '[':
			i = g.class(pattern, i+1)
		case c == '\\' && i+1 < len(pattern):
			g.accept(pattern[i+1])
			i += 2
		default:
			g.accept(c)
			i++
		}
		g.size++
	}
	g.words = g.size>>6 + 1
	return g
}

// accept lets a byte take the step that is being compiled.
func (g *glob) accept(c byte) {
	s := g.on[c]
	if s == nil {
		s = new(globSet)
		g.on[c] = s
	}
	s.add(g.size)
}

// class compiles what follows a bracket and returns the place behind it. A bracket that is never
// closed ends with the pattern, as in Redis.
func (g *glob) class(pattern string, i int) int {
	var member [256]bool
	negated := i < len(pattern) && pattern[i] == '^'
	if negated {
		i++
	}
	for i < len(pattern) && pattern[i] != ']' {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			member[pattern[i+1]] = true
			i += 2
		case i+2 < len(pattern) && pattern[i+1] == '-':
			from, to := pattern[i], pattern[i+2]
			for c := int(min(from, to)); c <= int(max(from, to)); c++ {
				member[c] = true
			}
			i += 3
		default:
			member[pattern[i]] = true
			i++
		}
	}
	for c, in := range member {
		if in != negated {
			g.accept(byte(c))
		}
	}
	return i + 1
}

// match reports whether the whole text matches.
func (g *glob) match(text string) bool {
	var at globSet
	at.add(0)
	for i := 0; i < len(text); i++ {
		on := g.on[text[i]]
		carry, alive := uint64(0), uint64(0)
		for w := range g.words {
			step := g.any[w]
			if on != nil {
				step |= on[w]
			}
			moved := at[w] & step
			at[w] = moved<<1 | carry | at[w]&g.stay[w]
			carry = moved >> 63
			alive |= at[w]
		}
		if alive == 0 {
			return false
		}
	}
	return at.has(g.size)
}
