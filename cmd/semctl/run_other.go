//go:build !unix

package main

// Run says that there is none.
func (*guardCommand) Run(*session) error {
	return fail(exitFailure, "run needs process groups and signals, which this system does not have")
}

// guardianCommand has nothing to guard.
type guardianCommand struct{}

// Run says so.
func (*guardianCommand) Run(*session) error {
	return fail(exitFailure, "there is no run on this system")
}
