package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/semserver/semserver"
	maxLines = 400
)

// arrows says which of our packages each package may import, and which modules from outside, by
// prefix. The standard library is free. What is not listed may import nothing but it.
var arrows = map[string][]string{
	"semaphore":    {},
	"fsm":          {"/semaphore", "github.com/tidwall/btree"},
	"cluster":      {"/cluster/peer", "/fsm", "/semaphore", "github.com/hashicorp", "go.etcd.io/bbolt", "github.com/prometheus/client_golang"},
	"cluster/peer": {"golang.org/x/sys"},
	"redisbackend": {
		"/redisbackend/link", "/redisbackend/script", "/semaphore", "github.com/prometheus/client_golang", "github.com/tidwall/btree",
	},
	"redisbackend/link":   {"/redisbackend/script", "/semaphore", "github.com/redis/go-redis"},
	"redisbackend/script": {"/semaphore"},
	"server":              {"/semaphore", "github.com/tidwall/redcon", "github.com/prometheus", "golang.org/x/sys"},
	"admin":               {"github.com/prometheus/client_golang"},
	"client":              {"/semaphore", "github.com/redis/go-redis", "golang.org/x/sys"},
	"cmd/semserver": {
		"/admin", "/cluster", "/cluster/peer", "/internal/cli", "/internal/version", "/redisbackend", "/redisbackend/link", "/redisbackend/script", "/server", "/semaphore",
		"github.com/alecthomas/kong", "github.com/prometheus/client_golang", "github.com/redis/go-redis", "go.yaml.in/yaml",
	},
	"cmd/semctl": {
		"/client", "/cmd/semctl/internal/complete", "/cmd/semctl/internal/guard", "/cmd/semctl/internal/job", "/cmd/semctl/internal/load",
		"/cmd/semctl/internal/plain", "/cmd/semctl/internal/remote", "/cmd/semctl/internal/top", "/internal/cli", "/internal/version",
		"github.com/alecthomas/kong", "github.com/charmbracelet/x/term", "github.com/muesli/cancelreader", "github.com/redis/go-redis", "golang.org/x/sys",
	},
	"cmd/semctl/internal/complete": {"github.com/alecthomas/kong"},
	"cmd/semctl/internal/guard":    {"/client", "/cmd/semctl/internal/job", "/cmd/semctl/internal/plain", "/cmd/semctl/internal/remote"},
	"cmd/semctl/internal/job":      {"golang.org/x/sys"},
	"cmd/semctl/internal/load":     {"/cmd/semctl/internal/remote", "github.com/HdrHistogram"},
	"cmd/semctl/internal/plain":    {},
	"cmd/semctl/internal/remote":   {"github.com/redis/go-redis"},
	"cmd/semctl/internal/top":      {"/cmd/semctl/internal/plain", "/cmd/semctl/internal/remote", "charm.land", "github.com/charmbracelet/x/ansi"},
	"internal/cli":                 {"github.com/alecthomas/kong"},
	"internal/trial":               {},
	"internal/version":             {},
	"semaphore/semtest":            {"/internal/trial", "/semaphore"},
}

// listed is what the Go tool says of a package.
type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

// packages lists the packages of the project, and all that they depend on.
func packages(t *testing.T) map[string]listed {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Standard", module+"/...")
	out, err := list.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// violations are the imports of p that the arrows do not allow.
func violations(p listed, all map[string]listed) []string {
	allowed := arrows[strings.TrimPrefix(p.ImportPath, module+"/")]
	var found []string
	for _, path := range p.Imports {
		if all[path].Standard {
			continue
		}
		ok := slices.ContainsFunc(allowed, func(a string) bool {
			if strings.HasPrefix(a, "/") {
				return path == module+a
			}
			return path == a || strings.HasPrefix(path, a+"/")
		})
		if !ok {
			found = append(found, path)
		}
	}
	return found
}

func TestImportsFollowTheArrows(t *testing.T) {
	all := packages(t)
	for name := range arrows {
		if _, ok := all[module+"/"+name]; !ok {
			t.Errorf("package %s: got none, want it to exist as the arrows say", name)
		}
	}
	for path, p := range all {
		if !strings.HasPrefix(path, module+"/") || strings.HasPrefix(path, module+"/tests") {
			continue
		}
		for _, v := range violations(p, all) {
			t.Errorf("package %s imports %s, which the arrows do not allow", path, v)
		}
	}
}

func TestAnArrowThatIsNotDrawnIsFound(t *testing.T) {
	all := map[string]listed{"time": {Standard: true}}
	p := listed{ImportPath: module + "/fsm", Imports: []string{
		"time", module + "/semaphore", "github.com/tidwall/btree", "github.com/tidwall/btrees", module + "/cluster",
	}}

	got := violations(p, all)

	if want := []string{"github.com/tidwall/btrees", module + "/cluster"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// sources calls visit with every Go file of the project.
func sources(t *testing.T, visit func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		visit(path, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreShort(t *testing.T) {
	seen := 0
	sources(t, func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		seen++
		if got := bytes.Count(text, []byte("\n")); got > maxLines {
			t.Errorf("%s: got %d lines, want at most %d: it probably holds two nouns", path, got, maxLines)
		}
	})
	if seen == 0 {
		t.Error("no file was looked at")
	}
}

func TestNothingIsPutOff(t *testing.T) {
	marks := [][]byte{[]byte("TO" + "DO"), []byte("FIX" + "ME"), []byte("t.Skip" + "(")}
	sources(t, func(path string, text []byte) {
		for _, mark := range marks {
			if bytes.Contains(text, mark) {
				t.Errorf("%s contains %s: do it, or say in an issue why not yet", path, mark)
			}
		}
	})
}

func TestEveryPackageExplainsItself(t *testing.T) {
	documented := map[string]bool{}
	sources(t, func(path string, text []byte) {
		dir := filepath.Dir(path)
		documented[dir] = documented[dir] || filepath.Base(path) == "doc.go" && bytes.Contains(text, []byte("To add a "))
	})
	for name := range arrows {
		if dir := filepath.Join("..", name); !documented[dir] {
			t.Errorf("%s: got no doc.go with the words \"To add a …\", want one", name)
		}
	}
}
