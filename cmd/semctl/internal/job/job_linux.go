package job

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes us the parent of those processes whose parent has ended, so that we learn of their
// end. A kernel that refuses leaves them to process 1.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// dieWithParent has the kernel kill the command when we die, also by SIGKILL.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
