// Package guard runs a command while it holds a permit: semctl run.
//
//	guard.go    the whole: wait, run, give back
//	wait.go     standing in line, with signals and the display
//	line.go     what is known of the line, for the display
//	watch.go    the running command: signals, its end, and the end of its permit
//	deadline.go when a permit's end has to be acted on
//	report.go   what is said on stderr, for people or as JSON; outlet.go: without being held up by it
//
// Everything that touches the command or stderr is done by one goroutine, locked to its thread (see
// package job). Two others serve it while it waits: one stands in line, one looks at
// the line. A third writes to stderr, which may be stuck.
//
// The permit's end is acted on early: the command is asked to end (TERM) a grace before, and killed so
// early that it is dead when the permit ends, which in turn is a margin before the lease is over at the
// server (package client). While there is hope, renewals go on; the command learns nothing of an outage
// that is shorter than the lease less the grace.
//
// To add a way to act on a loss, edit OnLost in deadline.go, and the flag in semctl.
package guard
