//go:build race

package tests

// buildFlags make the binary like the tests themselves.
func buildFlags() []string { return []string{"-race"} }
