package server

import (
	"strings"
	"testing"
	"time"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"*", "", true}, {"*", "abc", true},
		{"a*c", "abbc", true}, {"a*c", "ac", true}, {"a*c", "abcd", false}, {"**a**", "xay", true},
		{"h?llo", "hello", true}, {"h?llo", "hllo", false}, {"h[ae]llo", "hallo", true}, {"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true}, {"h[^e]llo", "hello", false}, {"h[a-c]llo", "hbllo", true}, {"h[c-a]llo", "hbllo", true},
		{"h[a-c]llo", "hdllo", false}, {`h\*llo`, "h*llo", true}, {`h\*llo`, "hello", false}, {`[\]]`, "]", true},
		{"[", "x", false}, {"[a", "a", true}, {`a\`, `a\`, true}, {"a[^", "ab", true},
		{"db:*:export", "db:7:export", true}, {"*\xff?", "\x00\xff\r", true}, {"*.b", "a.b.c", false},
		{strings.Repeat("a", 200), strings.Repeat("a", 200), true}, {strings.Repeat("?", 63) + "*" + "b", strings.Repeat("a", 100) + "b", true},
		{strings.Repeat("a", 64) + "*", strings.Repeat("a", 64), true}, {strings.Repeat("a", 64) + "*", strings.Repeat("a", 63), false},
	} {
		if got := compileGlob(c.pattern).match(c.text); got != c.want {
			t.Errorf("%.60q matches %.60q: got %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}

func TestGlobTakesLinearTime(t *testing.T) {
	pattern := compileGlob(strings.Repeat("*a", maxPattern/2))
	text := strings.Repeat("a", 1023) + "b"
	began := time.Now()
	for range 1000 {
		if pattern.match(text) {
			t.Fatal("matches, want not")
		}
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("1000 keys took %v", took)
	}
}

// naive is the definition that the fast one must agree with.
func naive(p, s string) bool {
	if p == "" {
		return s == ""
	}
	switch p[0] {
	case '*':
		return naive(p[1:], s) || (s != "" && naive(p, s[1:]))
	case '?':
		return s != "" && naive(p[1:], s[1:])
	}
	return s != "" && p[0] == s[0] && naive(p[1:], s[1:])
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b?", "aXbY")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > maxPattern || len(text) > 1024 {
			return
		}
		got := compileGlob(pattern).match(text)
		if len(pattern) > 10 || len(text) > 10 || strings.ContainsAny(pattern, `[\`) {
			return
		}
		if want := naive(pattern, text); got != want {
			t.Errorf("%q matches %q: got %v, want %v", pattern, text, got, want)
		}
	})
}
