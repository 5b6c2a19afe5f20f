package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// Bounds of what is said about other nodes.
const (
	maxNodes           = 15
	minPeers           = 16 // a few connections for each of the other nodes of a small cluster
	minElectionTimeout = 100 * time.Millisecond
)

func (f peerFlags) check() error {
	err := cmp.Or(
		f.checkAddresses(),
		within("--bootstrap-expect", f.BootstrapExpect, 0, maxNodes),
		within("--election-timeout", f.ElectionTimeout, minElectionTimeout, time.Minute),
		within("--max-peers", f.MaxPeers, minPeers, maxCount),
		f.checkSecurity(),
	)
	if err == nil && f.BootstrapExpect > 1 && len(f.Join) == 0 {
		return fmt.Errorf("--bootstrap-expect %d needs --join: the nodes must find each other", f.BootstrapExpect)
	}
	return err
}

func (f peerFlags) checkAddresses() error {
	for _, a := range append([]flagged{
		{"--peer-advertise", f.PeerAdvertise}, {"--client-advertise", f.ClientAdvertise},
	}, flaggedAll("--join", f.Join)...) {
		if err := a.checkReachable(); err != nil {
			return err
		}
	}
	if host, _, _ := net.SplitHostPort(f.listen()); f.listen() != "" && everywhere(host) && f.PeerAdvertise == "" {
		return fmt.Errorf("--peer-listen %s names every interface: give the address under which the other nodes reach this one as --peer-advertise", f.listen())
	}
	return nil
}

// flagged is a value and the flag that it was given with.
type flagged struct{ flag, value string }

func flaggedAll(flag string, values []string) []flagged {
	all := make([]flagged, len(values))
	for i, v := range values {
		all[i] = flagged{flag, cmp.Or(v, "no address")}
	}
	return all
}

// checkReachable accepts an address that others can connect to, and nothing.
func (a flagged) checkReachable() error {
	if err := checkAddress(a.flag, a.value); err != nil || a.value == "" {
		return err
	}
	host, _, _ := net.SplitHostPort(a.value)
	switch {
	case everywhere(host):
		return fmt.Errorf("%s: nobody can connect to %q: it names no host", a.flag, a.value)
	case freePort(a.value):
		return fmt.Errorf("%s: nobody can connect to %q: the port is 0", a.flag, a.value)
	}
	return nil
}

// checkDisaster refuses --restore and --recover-single where they would do harm or nothing.
func (f flags) checkDisaster() error {
	switch p := f.Peers; {
	case p.Restore != "" && p.RecoverSingle:
		return errors.New("--restore begins anew and --recover-single goes on: give one of them")
	case p.Restore != "" && len(p.Join) > 0:
		return errors.New("--restore begins a cluster of one: the other nodes --join it, it joins none")
	case p.RecoverSingle && (len(p.Join) > 0 || p.BootstrapExpect > 0):
		return errors.New("--recover-single makes a cluster of one: leave out --join and --bootstrap-expect")
	case p.Restore != "":
		return cmp.Or(checkFile("--restore", p.Restore), f.wantState("--restore", false))
	case p.RecoverSingle:
		return f.wantState("--recover-single", true)
	}
	return nil
}

// checkFile refuses what is no file that can be read.
func checkFile(flag, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %s is not a file", flag, path)
	}
	return nil
}

// wantState refuses a flag for a data directory that holds something, or nothing.
func (f flags) wantState(flag string, want bool) error {
	entries, err := os.ReadDir(f.Engine.DataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: data directory: %w", flag, err)
	}
	holds := false
	for _, e := range entries {
		holds = holds || e.Name() != "lost+found"
	}
	switch {
	case holds && !want:
		return fmt.Errorf("%s: the data directory %s is not empty: leave the flag out to go on with what it holds", flag, f.Engine.DataDir)
	case want && !holds:
		return fmt.Errorf("%s: the data directory %s holds nothing to go on with", flag, f.Engine.DataDir)
	}
	return nil
}
