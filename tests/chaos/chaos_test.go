package chaos

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/tests/chaos/internal/fleet"
	"github.com/semserver/semserver/tests/internal/node"
)

const (
	timeVariable  = "SEMSERVER_CHAOS_TIME"
	nodesVariable = "SEMSERVER_CHAOS_NODES"
	seedVariable  = "SEMSERVER_CHAOS_SEED"
	raceVariable  = "SEMSERVER_CHAOS_RACE"
)

// binary is the server under test, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "semserver-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	var flags []string
	if os.Getenv(raceVariable) != "" {
		flags = append(flags, "-race")
	}
	if binary, err = node.Build(folder, flags...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := playSideBySide(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// playSideBySide lets more clusters run at once than there are processors, unless -parallel says
// otherwise: they wait more than they work.
func playSideBySide() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
}

// open starts a cluster for the length of the test. What its nodes complain of fails the test.
func open(t testing.TB, nodes int, flags ...string) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Open(fleet.Config{Binary: binary, Nodes: nodes, Dir: t.TempDir(), Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.Logs(60))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// must fails the test if a step of it went wrong.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// others are the nodes beside this one.
func others(f *fleet.Fleet, i int) []int {
	var all []int
	for j := 1; j <= f.Size(); j++ {
		if j != i {
			all = append(all, j)
		}
	}
	return all
}

// leader is the node that leads, as soon as one does.
func leader(t testing.TB, f *fleet.Fleet) int {
	t.Helper()
	i, err := f.AwaitLeader(0)
	must(t, err)
	return i
}

// length is a span of time from the environment.
func length(t *testing.T, variable string, fallback time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}
