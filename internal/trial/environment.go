package trial

import (
	"os"
	"strconv"
	"testing"
)

// Number is a number from the environment, such as a seed that repeats a run; fallback where the
// variable is not set. What is no number ends the test.
func Number(t testing.TB, variable string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
