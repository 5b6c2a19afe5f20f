package resp

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func TestRepliesAreRead(t *testing.T) {
	for wire, want := range map[string]any{
		"+OK\r\n":                       Simple("OK"),
		"-NOSEM no such semaphore\r\n":  Error("NOSEM no such semaphore"),
		":-1\r\n":                       int64(-1),
		"$-1\r\n":                       nil,
		"*-1\r\n":                       nil,
		"_\r\n":                         nil,
		"$0\r\n\r\n":                    "",
		"$4\r\n\r\n\x00a\r\n":           "\r\n\x00a",
		"*2\r\n:1\r\n*0\r\n":            []any{int64(1), []any{}},
		"%1\r\n$1\r\na\r\n:1\r\n":       Map{"a", int64(1)},
		"#t\r\n":                        true,
		">2\r\n+message\r\n$1\r\nx\r\n": []any{Simple("message"), "x"},
	} {
		got, err := read(bufio.NewReader(strings.NewReader(wire)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v, %v, want %#v", wire, got, err, want)
		}
	}
	for _, wire := range []string{"", "OK\r\n", "+OK\n", ":x\r\n", "$5\r\nab", "*2\r\n:1\r\n", "?\r\n"} {
		if got, err := read(bufio.NewReader(strings.NewReader(wire))); err == nil {
			t.Errorf("%q: got %#v, want an error", wire, got)
		}
	}
}
