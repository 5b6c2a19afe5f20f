package main

import "testing"

// A name that a shell would take for something else than one word could run what its maker wanted.
func TestOnlyNamesThatNeedNoQuotesAreCompleted(t *testing.T) {
	for name, want := range map[string]bool{
		"cache-loader": true, "api/v1:acme@eu": true, "a_b.c%d+e,f": true,
		"": false, "-rf": false, "sp ace": false, "q'uote": false, "$(touch x)": false, "`x`": false, "a;b": false,
		"a&b": false, "a|b": false, "a>b": false, "*": false, "?": false, "[a]": false, "~": false, "{a,b}": false, "a\\b": false,
		"a!b": false, "#a": false, "a\nb": false, "a=b": false, "\xff": false, "é": false,
	} {
		if got := isWord(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
