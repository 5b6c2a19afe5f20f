//go:build !race

package redismode

// buildFlags make the binary like the tests themselves.
func buildFlags() []string { return nil }
