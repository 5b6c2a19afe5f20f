//go:build !linux

package peer

import "net/netip"

func setUserTimeout(uintptr) {}

// bindSource would make a connection come from an address; here the system chooses.
func bindSource(uintptr, netip.Addr) {}
