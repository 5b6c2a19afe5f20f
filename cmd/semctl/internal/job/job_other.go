//go:build unix && !linux

package job

import "syscall"

func adoptOrphans() {}

func dieWithParent(*syscall.SysProcAttr) {}
