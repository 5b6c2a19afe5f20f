package cli

import (
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestDurationsNeedAUnit(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "300ms": 300 * time.Millisecond, "1h30m": 90 * time.Minute, "-5s": -5 * time.Second} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"5":    "5: a duration needs a unit, such as 5s",
		"1.5":  "1.5: a duration needs a unit, such as 1.5s",
		"":     `"" is no duration; 300ms, 5s and 1h30m are`,
		"soon": `"soon" is no duration; 300ms, 5s and 1h30m are`,
		"5d":   `"5d" is no duration; 300ms, 5s and 1h30m are`,
		"inf":  `"inf" is no duration; 300ms, 5s and 1h30m are`,
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestFlagsOfAParserAreReadSo(t *testing.T) {
	var f struct {
		Wait  time.Duration
		Lease *time.Duration
	}
	parser, err := kong.New(&f, Durations())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--wait=5s", "--lease", "1m"}); err != nil || f.Wait != 5*time.Second || *f.Lease != time.Minute {
		t.Errorf("got %v, %v, %v, want 5s and 1m", f.Wait, f.Lease, err)
	}
	if _, err := parser.Parse([]string{"--wait", "5"}); err == nil || err.Error() != "--wait: 5: a duration needs a unit, such as 5s" {
		t.Errorf("got %v, want that it needs a unit", err)
	}
}
