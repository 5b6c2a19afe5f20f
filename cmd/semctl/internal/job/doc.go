// Package job runs a command in a process group of its own, and knows what becomes of it.
//
// A signal goes to the whole group, so that it reaches what a shell has started. The group also counts as
// running until its last member has ended: on Linux those whose parent is gone become our children
// (subreaper), so that their end is seen too. If this process is killed, the whole group is killed by a
// guardian, a small process of its own that notices our end (guardian.go); on Linux the kernel kills the
// command besides (parent-death signal).
//
// Where standard input is a terminal and we are in its foreground, the command is put there in our
// place, so that it can read from it; Ctrl-C then goes to the command directly, and Ctrl-Z, or reading
// from the background, stops it and us with it (terminal.go).
//
// Nothing here waits or starts a goroutine. The owner calls Reap when a SIGCHLD has come, and keeps the
// goroutine that called Start on its thread for as long as the job lives.
//
// To add a fact about the command that its owner should know, edit Reap in reap.go.
package job
