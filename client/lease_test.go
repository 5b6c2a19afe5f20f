package client

import (
	"testing"
	"time"
)

func TestPermitEndsAMarginBeforeItsLease(t *testing.T) {
	for _, c := range []struct{ length, want time.Duration }{
		{200 * time.Millisecond, 148 * time.Millisecond},
		{time.Second, 940 * time.Millisecond},
		{30 * time.Second, 29650 * time.Millisecond},
		{time.Hour, 59*time.Minute + 24*time.Second - 50*time.Millisecond},
	} {
		l := lease{asked: time.Minute, length: c.length}
		if got := l.ends() - time.Minute; got != c.want {
			t.Errorf("lease %v: got an end after %v, want %v", c.length, got, c.want)
		}
	}
}

func TestSeveralRenewalsFitIntoALease(t *testing.T) {
	for _, length := range []time.Duration{MinLease, time.Second, 30 * time.Second, time.Hour, 24 * time.Hour} {
		l := lease{length: length}
		if got := (l.ends() - l.due()) / (l.try() + l.pause()); got < 1 {
			t.Errorf("lease %v: got room for %d renewals of %v, want one at least", length, got, l.try())
		}
		if length >= time.Second && (l.ends()-l.due())/(l.try()+l.pause()) < 3 {
			t.Errorf("lease %v: %v and %v leave no room for three renewals", length, l.try(), l.pause())
		}
	}
}

func TestClockGoesOn(t *testing.T) {
	a := elapsed()
	began := time.Now()
	for time.Since(began) < 2*time.Millisecond {
		continue
	}
	if got := elapsed() - a; got < time.Millisecond || got > time.Minute {
		t.Errorf("got %v in 2 ms, want about as much", got)
	}
}
