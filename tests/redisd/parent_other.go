//go:build !linux

package redisd

import "syscall"

// withParent is for Linux alone; elsewhere a test process that is killed leaves its servers behind.
func withParent() *syscall.SysProcAttr { return nil }
