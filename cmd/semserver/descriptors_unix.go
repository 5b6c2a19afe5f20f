//go:build unix

package main

import "syscall"

// descriptors returns how many files this process may have open; 0 where that is not known. Go has
// already raised the soft limit to the hard one.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) // signed on some systems
}
