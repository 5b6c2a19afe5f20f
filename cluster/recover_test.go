package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// recovered is what is left of three nodes: a, which was made a cluster of one. The others are stopped.
func recovered(t *testing.T) (f *fleet, token int64) {
	t.Helper()
	f = formed(t, "a", "b", "c")
	token = f.take("h")
	f.wantApplied("a")
	f.stop("a", "b", "c")
	f.edit("a", func(c *Config) { c.RecoverSingle, c.Join, c.BootstrapExpect = true, nil, 0 })
	f.start("a")
	f.wantShapeOf("a", "a")
	return f, token
}

func TestNodeRecoversAsAClusterOfOne(t *testing.T) {
	f, token := recovered(t)
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want that of the old grant, %d", got, token)
	}
	f.wantSaid("a", "recovered as a cluster of one")
	cluster := f.nodes["a"].clusterID()
	f.stop("a")
	f.start("a") // with --recover-single still given
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want %d", got, token)
	}
	if got := f.nodes["a"].clusterID(); got != cluster {
		t.Errorf("cluster %s after a second recovery of nothing, want %s", got, cluster)
	}
}

// Members that were thought to be gone for ever come back: they are of another cluster now.
func TestLostMajorityIsRefusedAfterARecovery(t *testing.T) {
	f, _ := recovered(t)
	last := f.take("x")
	for _, name := range []string{"b", "c"} {
		f.edit(name, func(c *Config) { c.Join = []string{f.cfg["a"].PeerListen} })
	}
	f.start("b", "c")
	f.wantSaid("b", "an address to join belongs to another cluster")
	f.wantSaid("c", "an address to join belongs to another cluster")
	f.wantShapeOf("a", "a")
	if got := f.take("y"); got <= last {
		t.Errorf("token %d after %d", got, last)
	}
	f.stop("b", "c")
	f.wipe("b")
	f.wipe("c")
	f.start("b", "c")
	f.wantShape("abc")
}

func TestRecoveryThatWasKilledMustBeRepeated(t *testing.T) {
	f := formed(t, "a", "b", "c")
	token := f.take("h")
	f.wantApplied("a")
	f.stop("a", "b", "c")
	id, err := peekIdentity(f.cfg["a"].DataDir)
	if err != nil {
		t.Fatal(err)
	}
	id.Cluster, id.Recovering = randomID(), true
	if err := id.save(filepath.Join(f.cfg["a"].DataDir, identityFile)); err != nil {
		t.Fatal(err)
	}
	f.refuses("a", "start with --recover-single again")
	f.edit("a", func(c *Config) { c.RecoverSingle, c.Join, c.BootstrapExpect = true, nil, 0 })
	f.start("a")
	f.wantShapeOf("a", "a")
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want %d", got, token)
	}
}

// Killed between the snapshot and the removal of the log that it stands for.
func TestRecoveryThatWasKilledBeforeTheLogWasRemovedIsRepeated(t *testing.T) {
	f := formed(t, "a", "b", "c")
	token := f.take("h")
	f.wantApplied("a")
	f.stop("a", "b", "c")
	cfg := f.cfg["a"]
	log := filepath.Join(t.TempDir(), "wal")
	if err := os.CopyFS(log, os.DirFS(filepath.Join(cfg.DataDir, "wal"))); err != nil {
		t.Fatal(err)
	}
	f.edit("a", func(c *Config) { c.RecoverSingle, c.Join, c.BootstrapExpect = true, nil, 0 })
	f.start("a")
	f.wantShapeOf("a", "a")
	f.stop("a")
	steps(t,
		func() error { return os.RemoveAll(filepath.Join(cfg.DataDir, "wal")) },
		func() error { return os.CopyFS(filepath.Join(cfg.DataDir, "wal"), os.DirFS(log)) },
		func() error { return removeDurably(filepath.Join(cfg.DataDir, stoppedFile)) },
	)
	id, err := peekIdentity(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	id.Recovering = true
	if err := id.save(filepath.Join(cfg.DataDir, identityFile)); err != nil {
		t.Fatal(err)
	}
	f.start("a")
	f.wantShapeOf("a", "a")
	if got := f.take("h"); got != token {
		t.Errorf("token %d, want %d", got, token)
	}
}

func TestNothingIsRecoveredFromAnEmptyDirectory(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.RecoverSingle = true
	wantRefusal(t, cfg, "there is nothing to recover")
}

func TestContradictingSettingsAreRefused(t *testing.T) {
	for want, by := range map[string]func(*Config){
		"give one of them":     func(c *Config) { c.Restore, c.RecoverSingle = "x", true },
		"leave out --join":     func(c *Config) { c.RecoverSingle, c.PeerListen, c.Join = true, "127.0.0.1:0", []string{"a:1"} },
		"it joins none":        func(c *Config) { c.Restore, c.PeerListen, c.Join = "x", "127.0.0.1:0", []string{"a:1"} },
		"cannot join or form":  func(c *Config) { c.Join = []string{"a:1"} },
		"must not be negative": func(c *Config) { c.BootstrapExpect = -1 },
	} {
		cfg := testConfig(filepath.Join(t.TempDir(), "none"))
		by(&cfg)
		wantRefusal(t, cfg, want)
		if _, err := os.Stat(cfg.DataDir); err == nil {
			t.Errorf("%s: the directory was made", want)
		}
	}
}
