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

// joinNegative turns `--flag -1` into `--flag=-1`, up to a "--". No flag begins with a digit, and kong
// would take the number for one.
func joinNegative(args []string) []string {
	var joined []string
	for i, a := range args {
		if a == "--" {
			return append(joined, args[i:]...)
		}
		last := len(joined) - 1
		negative := len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9'
		if negative && last >= 0 && strings.HasPrefix(joined[last], "--") && !strings.Contains(joined[last], "=") {
			joined[last] += "=" + a
			continue
		}
		joined = append(joined, a)
	}
	return joined
}
