package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// maxFile is the largest configuration file that is read.
const maxFile = 1 << 20

// settings are the values of a configuration file, by flag.
type settings map[string]any

// readFile reads a configuration file: YAML, hence JSON as well, one key for each flag, without the
// dashes in front. A repeatable flag takes a list. Every value is taken as it is written, so
// `protected-mode: no` is the word and `hold: 5s` needs no quotes.
func readFile(path string) (settings, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s, err := readSettings(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func readSettings(r io.Reader) (settings, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(text, &nodes); err != nil {
		return nil, err
	}
	s := make(settings, len(nodes))
	for name, n := range nodes {
		if s[name], err = valueOf(&n); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", n.Line, name, err)
		}
	}
	return s, nil
}

// valueOf is a scalar's text, or the texts of a list of scalars.
func valueOf(n *yaml.Node) (any, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return n.Value, nil
	case n.Kind == yaml.SequenceNode:
		var list []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, errors.New("the list may hold only plain values")
			}
			list = append(list, item.Value)
		}
		return list, nil
	}
	return nil, errors.New("a plain value or a list of them is needed")
}

// resolver gives flags their values from the file.
func (s settings) resolver() kong.Resolver { return fileResolver{s} }

type fileResolver struct{ settings settings }

// Validate implements kong.Resolver: a key that names no flag is an error, since a mistyped limit
// would otherwise not be in force.
func (r fileResolver) Validate(app *kong.Application) error {
	var flags []string
	for _, f := range app.Flags {
		if !onlyOnCommandLine(f.Name) && f.Name != "config" {
			flags = append(flags, f.Name)
		}
	}
	for name := range r.settings {
		if !slices.Contains(flags, name) {
			return fmt.Errorf("unknown setting %q", name)
		}
	}
	return nil
}

// Resolve implements kong.Resolver.
func (r fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	switch v := r.settings[flag.Name].(type) {
	case string:
		if flag.IsSlice() {
			return words([]string{v}), nil
		}
		return v, nil
	case []string:
		if !flag.IsSlice() {
			return nil, errors.New("one value is needed, not a list")
		}
		return words(v), nil
	}
	return nil, nil
}
