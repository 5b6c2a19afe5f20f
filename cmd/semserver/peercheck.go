package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/semserver/semserver/cluster"
)

// Bounds of what is said about other nodes.
const (
	maxNodes = 15
	minPeers = 16 // a few connections for each of the other nodes of a small cluster
)

func (f peerFlags) check() error {
	err := cmp.Or(
		f.checkAddresses(),
		within("--bootstrap-expect", f.BootstrapExpect, 0, maxNodes),
		within("--election-timeout", f.ElectionTimeout, cluster.MinElectionTimeout, time.Minute),
		within("--max-peers", f.MaxPeers, minPeers, maxCount),
		f.checkSecurity(),
	)
	switch {
	case err != nil:
		return err
	case f.Restore != "":
		return checkFile("--restore", f.Restore)
	case f.BootstrapExpect > 1 && len(f.Join) == 0:
		return fmt.Errorf("--bootstrap-expect %d needs --join: the nodes must find each other", f.BootstrapExpect)
	}
	return nil
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
