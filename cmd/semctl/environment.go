package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// connectionGroup is the group of the flags that the environment may set.
const connectionGroup = "Connection"

// environment gives flags their values: variables as os.Environ returns them.
type environment []string

// Validate implements kong.Resolver.
func (environment) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver.
func (e environment) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Group == nil || flag.Group.Key != connectionGroup {
		return nil, nil
	}
	value, ok := e.lookup(envName(flag.Name))
	if !ok {
		return nil, nil
	}
	return value, nil
}

// lookup returns a variable. Of several with one name the last counts, as in a shell.
func (e environment) lookup(name string) (value string, ok bool) {
	for _, v := range e {
		if rest, found := strings.CutPrefix(v, name+"="); found {
			value, ok = rest, true
		}
	}
	return value, ok
}

// envName is the variable that stands for a flag.
func envName(flag string) string {
	return "SEMCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
