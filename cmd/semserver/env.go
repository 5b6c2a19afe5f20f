package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix begins the name of every environment variable that is read.
const envPrefix = "SEMSERVER_"

// lookup finds an environment variable, as os.LookupEnv does.
type lookup func(name string) (value string, ok bool)

// envName is the variable that stands for a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// envResolver gives flags their values from the environment. A repeatable flag takes several values
// separated by spaces. Variables that name no flag are ignored: Kubernetes sets SEMSERVER_PORT and
// the like by itself where a service is called semserver.
func envResolver(env lookup) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		value, ok := env(envName(flag.Name))
		if !ok || onlyOnCommandLine(flag.Name) {
			return nil, nil
		}
		if flag.IsSlice() {
			return words(strings.Fields(value)), nil
		}
		return value, nil
	})
}

// onlyOnCommandLine are the flags that ask for a page instead of configuring a node.
func onlyOnCommandLine(flag string) bool { return flag == "help" || flag == "version" }

func words(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
