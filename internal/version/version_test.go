package version

import (
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"testing"
)

func TestNameIsTheModulesVersionOrTheCommit(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}
	dirty := append(commit[:1:1], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, c := range []struct {
		build debug.BuildInfo
		want  string
	}{
		{debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: commit}, "v1.2.3"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit}, "devel-0123456789ab"},
		{debug.BuildInfo{Settings: dirty}, "devel-0123456789ab-dirty"},
		{debug.BuildInfo{}, "devel-unknown"},
	} {
		if got := nameOf(&c.build); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.build, got, c.want)
		}
	}
}

// The linker says nothing about a variable that it does not find.
func TestReleaseIsWhatTheMakefileAndTheDockerfileSet(t *testing.T) {
	symbols := map[string]bool{}
	for _, file := range []string{"../../Makefile", "../../Dockerfile"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`-X ([^= ]+)=`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s: got no -X, want the variable that holds the release", file)
		}
		symbols[string(found[1])] = true
	}
	for symbol := range symbols {
		got, err := exec.Command("go", "run", "-ldflags", "-X "+symbol+"=v9.9.9", "../../cmd/semctl", "--version").CombinedOutput()
		if want := "semctl v9.9.9\n"; err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", symbol, got, err, want)
		}
	}
}
