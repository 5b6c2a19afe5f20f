package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix begins the name of every environment variable that is read.
const envPrefix = "SEMSERVER_"

// environment are the variables of the process.
type environment map[string]string

// readEnvironment reads variables as os.Environ returns them.
func readEnvironment(variables []string) environment {
	env := make(environment, len(variables))
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

// envName is the variable that stands for a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// envResolver gives flags their values from the environment. A repeatable flag takes several values
// separated by spaces.
type envResolver struct {
	env     environment
	unknown []string // variables with our prefix that have no effect, in alphabetical order
}

// Validate implements kong.Resolver. A variable that names no flag is not refused, because others set
// such variables as well; it is noted.
func (r *envResolver) Validate(app *kong.Application) error {
	known := make(map[string]bool, len(app.Flags))
	for _, f := range app.Flags {
		known[envName(f.Name)] = !onlyOnCommandLine(f.Name)
	}
	r.unknown = nil
	for name := range r.env {
		if strings.HasPrefix(name, envPrefix) && !known[name] && !ofKubernetes(name) {
			r.unknown = append(r.unknown, name)
		}
	}
	slices.Sort(r.unknown)
	return nil
}

// Resolve implements kong.Resolver.
func (r *envResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	value, ok := r.env[envName(flag.Name)]
	if !ok || onlyOnCommandLine(flag.Name) {
		return nil, nil
	}
	if flag.IsSlice() {
		return words(strings.Fields(value)), nil
	}
	return value, nil
}

// ofKubernetes says whether a variable is one of those that Kubernetes sets in every container for a
// service that is called semserver, or semserver-something.
func ofKubernetes(name string) bool {
	return regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`).MatchString(name)
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
