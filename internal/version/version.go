package version

import (
	"cmp"
	"runtime/debug"
)

// release is set by the linker.
var release string

// Name names this build: the release, else what the Go tool knows of the module and the commit.
func Name() string {
	if release != "" {
		return release
	}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return nameOf(b)
}

func nameOf(b *debug.BuildInfo) string {
	if b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	var revision, dirty string
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return "devel-" + cmp.Or(revision, "unknown") + dirty
}
