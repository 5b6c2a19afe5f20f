package peer

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheSameIsNotSaidAtEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &journal{}
		c := NewComplaints(logTo(log), complainEvery)
		said := func(what, address string) int {
			before := log.Count("\n")
			c.Say(slog.LevelWarn, what, address)
			return log.Count("\n") - before
		}
		for _, step := range []struct {
			what, address string
			want          int
		}{{"x", "a", 1}, {"x", "a", 0}, {"y", "a", 1}, {"x", "b", 1}, {"x", "b", 0}} {
			if got := said(step.what, step.address); got != step.want {
				t.Errorf("%s about %s: got %d lines, want %d", step.what, step.address, got, step.want)
			}
		}
		time.Sleep(complainEvery)
		if got := said("x", "a"); got != 1 {
			t.Errorf("later: got %d lines, want one", got)
		}
	})
}

func TestManyAddressesFloodNeitherLogNorMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &journal{}
		c := NewComplaints(logTo(log), complainEvery)
		for range 3 {
			before := log.Count("\n")
			for i := range 2 * maxComplaints {
				c.Say(slog.LevelWarn, "x", fmt.Sprint(i))
			}
			if got := log.Count("\n") - before; got != maxComplaints || len(c.last) != maxComplaints {
				t.Errorf("got %d lines and %d remembered, want %d", got, len(c.last), maxComplaints)
			}
			time.Sleep(complainEvery)
		}
	})
}
