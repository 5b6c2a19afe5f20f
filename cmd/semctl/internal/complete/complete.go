package complete

import (
	"strings"

	"github.com/alecthomas/kong"
)

// Candidate is a word that may stand there.
type Candidate struct {
	Word string
	Help string
}

// Place is the end of a command line.
type Place struct {
	// Candidates begin with what has been typed of the last word.
	Candidates []Candidate
	// Kind is what a value at this place names; empty where the grammar says all there is to say.
	Kind string
	// Typed is what has been typed of that value, and Before what stands in front of it in the same
	// word ("--sem=").
	Typed, Before string
	// Given are the values that have been given before, by the name of their flag or argument.
	Given map[string]string
}

// At reads a command line up to its last word, which is the one to be completed and may be empty.
func At(app *kong.Node, words []string) Place {
	w := walk{node: app, place: Place{Given: map[string]string{}}}
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	for _, word := range words[:len(words)-1] {
		w.pass(word)
	}
	w.end(last)
	return w.place
}

// walk is how far the command line has been read.
type walk struct {
	node    *kong.Node
	flag    *kong.Value // whose value comes next
	passed  int         // positional arguments so far
	onlyArg bool        // behind "--"
	place   Place
}

// pass reads a word that is complete.
func (w *walk) pass(word string) {
	switch {
	case w.flag != nil:
		w.place.Given[w.flag.Name] = word
		w.flag = nil
	case word == "--" && !w.onlyArg:
		w.onlyArg = true
	case strings.HasPrefix(word, "-") && !w.onlyArg:
		name, value, complete := strings.Cut(word, "=")
		flag := w.find(name)
		switch {
		case flag == nil || flag.IsBool():
		case complete:
			w.place.Given[flag.Name] = value
		default:
			w.flag = flag.Value
		}
	default:
		w.argument(word)
	}
}

// argument reads a command, or a positional argument.
func (w *walk) argument(word string) {
	for _, child := range w.node.Children {
		if child.Name == word {
			w.node, w.passed = child, 0
			return
		}
	}
	if arg := w.positional(); arg != nil {
		w.place.Given[arg.Name] = word
	}
	w.passed++
}

// positional is the argument that comes next; nil: there is none.
func (w *walk) positional() *kong.Value {
	all := w.node.Positional
	switch {
	case w.passed < len(all):
		return all[w.passed]
	case len(all) > 0 && all[len(all)-1].IsCumulative():
		return all[len(all)-1]
	}
	return nil
}

// find returns the flag of that name, "--json" or "-h".
func (w *walk) find(name string) *kong.Flag {
	for _, group := range w.node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

// end reads the last word.
func (w *walk) end(word string) {
	switch {
	case w.flag != nil:
		w.value(w.flag, "", word)
	case strings.HasPrefix(word, "-") && !w.onlyArg:
		name, typed, isValue := strings.Cut(word, "=")
		if !isValue {
			w.flags(word)
		} else if flag := w.find(name); flag != nil {
			w.value(flag.Value, name+"=", typed)
		}
	default:
		w.commands(word)
		if arg := w.positional(); arg != nil {
			w.value(arg, "", word)
		}
	}
}

func (w *walk) commands(typed string) {
	for _, child := range w.node.Children {
		if !child.Hidden && !w.onlyArg {
			w.offer(typed, child.Name, child.Help)
		}
	}
}

func (w *walk) flags(typed string) {
	for _, group := range w.node.AllFlags(true) {
		for _, f := range group {
			w.offer(typed, "--"+f.Name, f.Help)
		}
	}
}

// value offers the values that are one of a few, and notes the kind of those that are not.
func (w *walk) value(v *kong.Value, before, typed string) {
	if v.Enum != "" {
		for _, word := range v.EnumSlice() {
			w.offer(before+typed, before+word, "")
		}
	}
	w.place.Kind, w.place.Before, w.place.Typed = v.Tag.Get("complete"), before, typed
}

func (w *walk) offer(typed, word, help string) {
	if word != "" && strings.HasPrefix(word, typed) {
		help, _, _ = strings.Cut(help, ". ")
		w.place.Candidates = append(w.place.Candidates, Candidate{word, strings.TrimSuffix(help, ".")})
	}
}
