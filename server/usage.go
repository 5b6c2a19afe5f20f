package server

import "strings"

// argument describes one argument of a command, or a group of them, as COMMAND DOCS tells it.
type argument struct {
	name     string
	kind     string // key, string, integer, pattern, pure-token, block, oneof
	token    string // the word that introduces it
	optional bool
	multiple bool
	parts    []argument // of a block or oneof
}

// parseUsage reads a usage line, the one description of a command's arguments: words in capitals
// are written as they are, others stand for a value; [ ] is optional, | separates alternatives, and
// … may be repeated.
func parseUsage(usage string) []argument {
	usage = strings.NewReplacer("[", " [ ", "]", " ] ", "|", " | ").Replace(usage)
	p := &usageParser{words: strings.Fields(usage)}
	return p.sequence()
}

type usageParser struct {
	words []string
}

func (p *usageParser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *usageParser) pop() string {
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// sequence reads arguments up to a closing bracket, an alternative or the end.
func (p *usageParser) sequence() []argument {
	var all []argument
	for w := p.peek(); w != "" && w != "]" && w != "|"; w = p.peek() {
		if w == "[" {
			p.pop()
			a := p.group()
			a.optional = true
			p.pop()
			all = append(all, a)
			continue
		}
		all = append(all, p.one())
	}
	return all
}

// group reads the inside of brackets: alternatives, a block or a single argument.
func (p *usageParser) group() argument {
	choices := []argument{block(p.sequence())}
	for p.peek() == "|" {
		p.pop()
		choices = append(choices, block(p.sequence()))
	}
	if len(choices) == 1 {
		return choices[0]
	}
	return argument{name: choices[0].name, kind: "oneof", parts: choices}
}

func block(parts []argument) argument {
	if len(parts) == 1 {
		return parts[0]
	}
	return argument{name: parts[0].name, kind: "block", parts: parts}
}

// one reads a value, or a word in capitals with the value that it introduces.
func (p *usageParser) one() argument {
	w := p.pop()
	if w != strings.ToUpper(w) {
		return valueArgument(w)
	}
	next := p.peek()
	if next == "" || strings.ContainsAny(next, "[]|") || next == strings.ToUpper(next) {
		return argument{name: strings.ToLower(w), kind: "pure-token", token: w}
	}
	a := valueArgument(p.pop())
	a.token = w
	return a
}

func valueArgument(word string) argument {
	name, multiple := strings.CutSuffix(word, "…")
	kind := "string"
	switch name {
	case "key", "pattern":
		kind = name
	case "ms", "n", "t", "c", "capacity", "cursor", "index", "protover", "token", "client-id":
		kind = "integer"
	}
	return argument{name: name, kind: kind, multiple: multiple}
}

// arity is the number of arguments with the command's name, negative where more may follow.
func arity(names int, arguments []argument) int {
	n, more := names, false
	for _, a := range arguments {
		if a.optional || a.multiple {
			more = true
		}
		if !a.optional {
			n += a.width()
		}
	}
	if more {
		return -n
	}
	return n
}

// width is the number of words that an argument takes at least.
func (a *argument) width() int {
	switch {
	case a.kind == "pure-token":
		return 1
	case a.kind == "oneof":
		return a.parts[0].width()
	case a.kind == "block":
		n := 0
		for i := range a.parts {
			n += a.parts[i].width()
		}
		return n
	case a.token != "":
		return 2
	}
	return 1
}
