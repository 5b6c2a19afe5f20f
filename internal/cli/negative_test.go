package cli

import (
	"strings"
	"testing"
)

func TestNegativeNumbersAreValuesAndNotFlags(t *testing.T) {
	for in, want := range map[string]string{
		"bench --hold -1s":       "bench --hold=-1s",
		"a --x=1 -2":             "a --x=1 -2",
		"run --sem s -- nice -5": "run --sem s -- nice -5",
		"run -- --lease -5":      "run -- --lease -5",
		"x -1":                   "x -1",
	} {
		if got := strings.Join(JoinNegative(strings.Split(in, " ")), " "); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
