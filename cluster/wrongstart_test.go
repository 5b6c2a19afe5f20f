package cluster

import (
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/semaphore"
)

// contents are the names of all files in a directory; of those that say how it was left, the text as well.
func contents(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch name := d.Name(); name {
		case identityFile, stoppedFile, installedFile:
			text, err := os.ReadFile(path)
			all = append(all, name+": "+string(text))
			return err
		default:
			all = append(all, name)
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Neither a directory that is there, nor one that would be made, is touched for a file that is no state.
func TestBadFileToRestoreLeavesTheDirectoryAsItWas(t *testing.T) {
	path, _ := saved(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte(nil), text...)
	other[len(other)/2] ^= 1
	bad := map[string][]byte{"empty": {}, "cut": text[:len(text)/2], "damaged": other, "foreign": []byte("REDIS0011 is not ours")}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		cfg := testConfig(t.TempDir())
		cfg.Restore = filepath.Join(t.TempDir(), name)
		steps(t, func() error { return os.WriteFile(cfg.Restore, bad[name], 0o600) })
		wantRefusal(t, cfg, "restore "+cfg.Restore)
		if got := contents(t, cfg.DataDir); len(got) > 0 {
			t.Errorf("%s: the directory holds %v, want nothing", name, got)
		}
		cfg.DataDir = filepath.Join(cfg.DataDir, "none")
		wantRefusal(t, cfg, "restore "+cfg.Restore)
		if _, err := os.Stat(cfg.DataDir); err == nil {
			t.Errorf("%s: the directory was made", name)
		}
	}
}

// What the last stop has noted stays until a start is accepted: after a wrong one, the right one finds
// what it would have found without it.
func TestWrongStartChangesNothing(t *testing.T) {
	f := formed(t, "a", "b")
	f.stop("a", "b")
	path, _ := saved(t)
	for want, by := range map[string]func(*Config){
		"restore needs an empty data directory": func(c *Config) { c.Restore, c.Join, c.BootstrapExpect = path, nil, 0 },
		"start it with --peer-listen":           func(c *Config) { c.PeerListen, c.Join, c.BootstrapExpect = "", nil, 0 },
		"was made with --log-store":             func(c *Config) { c.LogStore = LogStoreBoltDB },
	} {
		cfg := f.cfg["a"]
		by(&cfg)
		before := contents(t, cfg.DataDir)
		wantRefusal(t, cfg, want)
		if got := contents(t, cfg.DataDir); !slices.Equal(got, before) {
			t.Errorf("%s: the directory holds %v, want %v", want, got, before)
		}
	}
	f.start("a", "b")
	f.wantShape("ab")
}

// A restoring that did not come to its end is not mistaken for a directory that is to begin empty.
func TestUnfinishedRestoringMustBeRepeated(t *testing.T) {
	path, token := saved(t)
	taken, err := net.Listen("tcp", freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := testConfig(t.TempDir())
	cfg.Restore, cfg.PeerListen = path, taken.Addr().String()
	wantRefusal(t, cfg, "listen for peers")
	cfg.Restore, cfg.PeerListen = "", ""
	wantRefusal(t, cfg, "start with --restore again")
	cfg.Restore, cfg.Metrics = path, NewMetrics(prometheus.NewRegistry())
	n := openNode(t, cfg)
	if g := acquire(t, n, semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Lease: time.Hour}); g.Token != token {
		t.Errorf("token %d, want %d", g.Token, token)
	}
	closeNode(t, n)
	cfg.Restore, cfg.Metrics = "", NewMetrics(prometheus.NewRegistry())
	closeNode(t, openNode(t, cfg))
}

func TestNothingToRecoverMakesNothing(t *testing.T) {
	cfg := testConfig(filepath.Join(t.TempDir(), "none"))
	cfg.RecoverSingle = true
	wantRefusal(t, cfg, "there is nothing to recover")
	if _, err := os.Stat(cfg.DataDir); err == nil {
		t.Error("the directory was made")
	}
}
