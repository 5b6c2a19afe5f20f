package remote

import "testing"

func TestAddressesAreCompletedOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a:1": "a:1", "a": "a:7360", " a:1 ": "a:1", "127.0.0.1": "127.0.0.1:7360",
		"[::1]:7": "[::1]:7", "::1": "[::1]:7360", "[::1]": "[::1]:7360", "/run/s": "/run/s", "unix:/run/s": "/run/s",
	} {
		if got, err := ParseAddr(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "a:b", "a:0", "a:65536", "a:1:2", ":7360", "redis://a:1", "unix:s", "unix:", "a b"} {
		if got, err := ParseAddr(text); err == nil {
			t.Errorf("%q: got %q, want an error", text, got)
		}
	}
}
