// Package fleet runs the nodes of one cluster as processes, and does to them what happens to machines:
// kill -9, a stop of all threads, a disk that takes no more, a graceful stop, a cut cable (package
// proxy).
//
// A disk fails by a limit on the size of files (RLIMIT_FSIZE): every write to a file is refused then, and
// the limit can be lifted while the process runs. Wall clocks cannot be stepped from outside: a Go
// program asks the kernel, past any library that could be put in its way; the simulation of package
// cluster does that, in process.
//
// One goroutine steers a Fleet; addresses may be read by all.
//
// To add a fault of a process, add a method to member.go; chaos/faults.go then puts it into schedules.
package fleet
