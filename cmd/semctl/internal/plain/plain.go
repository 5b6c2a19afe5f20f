package plain

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text makes any bytes fit for a terminal: what is not printable, and what could be taken for something
// quoted, is quoted as in Go.
func Text(t string) string {
	plain := utf8.ValidString(t) && t != "" && t[0] != '"' &&
		strings.IndexFunc(t, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if plain {
		return t
	}
	return strconv.Quote(t)
}

// Span writes a duration in few characters: 1h4m, 12s, 1.3s, 40ms. A negative one has no end.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "for ever"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return trim(d.Round(time.Second).String())
	}
	return trim(d.Round(time.Minute).String())
}

// trim takes the zero units from the end: 1h, not 1h0m0s.
func trim(s string) string {
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, end) {
			s = s[:len(s)-2]
		}
	}
	return s
}
