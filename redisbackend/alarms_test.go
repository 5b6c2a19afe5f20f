package redisbackend

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAlarmsRingInOrderAndOnlyWhenDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1000, 0)
		var as alarms
		var all []*alarm
		rung := map[*alarm]int{}
		var last time.Time
		for range rapid.IntRange(1, 60).Draw(t, "alarms") {
			a := new(alarm)
			a.ring = func() {
				rung[a]++
				if a.at.Before(last) {
					t.Fatalf("rang at %v after %v", a.at, last)
				}
				last = a.at
			}
			all = append(all, a)
		}
		want := map[*alarm]time.Time{}
		for range rapid.IntRange(0, 150).Draw(t, "moves") {
			a := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				as.drop(a)
				delete(want, a)
				continue
			}
			at := start.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "at")) * time.Second)
			as.put(a, at)
			want[a] = at
		}
		now := start.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "now")) * time.Second)
		as.ring(now)
		for _, a := range all {
			at, set := want[a]
			due := 0
			if set && !at.After(now) {
				due = 1
			}
			if rung[a] != due {
				t.Fatalf("alarm set %v for %v at %v: rang %d times, want %d", set, at, now, rung[a], due)
			}
		}
		next, some := as.next()
		for _, at := range want {
			if at.After(now) && (!some || at.Before(next)) {
				t.Fatalf("next: got %v, %v, want %v at the latest", next, some, at)
			}
		}
	})
}
