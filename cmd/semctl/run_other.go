//go:build !unix

package main

// Run says that there is none.
func (*guardCommand) Run(*session) error {
	return fail(exitFailure, "run needs process groups and signals, which this system does not have")
}
