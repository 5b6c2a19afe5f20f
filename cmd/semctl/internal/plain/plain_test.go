package plain

import (
	"testing"
	"time"
)

func TestTextLetsNothingThroughThatATerminalActsOn(t *testing.T) {
	for text, want := range map[string]string{
		"pool":              "pool",
		"customer:17 größe": "customer:17 größe",
		"":                  `""`,
		"a\x1b[2J":          `"a\x1b[2J"`,
		"a\nb":              `"a\nb"`,
		"a\tb":              `"a\tb"`,
		"\xff":              `"\xff"`,
		"\u202egpj.exe":     `"\u202egpj.exe"`, // text from right to left
		`"quoted"`:          `"\"quoted\""`,    // what looks quoted is quoted, so that quotes can be trusted
		`it's "so"`:         `it's "so"`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestSpanIsShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		40 * time.Millisecond:                 "40ms",
		1340 * time.Millisecond:               "1.3s",
		12*time.Second + 400*time.Millisecond: "12s",
		60 * time.Second:                      "1m",
		90 * time.Second:                      "1m30s",
		time.Hour:                             "1h",
		64 * time.Minute:                      "1h4m",
		24 * time.Hour:                        "24h",
		-1:                                    "for ever",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}
