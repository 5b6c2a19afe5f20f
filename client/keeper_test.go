package client

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// kept runs a keeper in a bubble, with a server that a test plays.
type kept struct {
	*testing.T
	began     time.Time
	suspended atomic.Int64 // how far the clock is ahead of the timers

	answer func(at time.Duration) (left, delay time.Duration, err error)
	asked  []time.Duration // when renewals were sent

	stop, closed chan struct{}
	leases       []lease
	result       chan error
}

// keepLease begins to keep a lease of this length. answer is what the server says to a renewal that is
// sent then, and how long that takes.
func keepLease(t *testing.T, length time.Duration, answer func(at time.Duration) (left, delay time.Duration, err error)) *kept {
	k := &kept{T: t, began: time.Now(), answer: answer, stop: make(chan struct{}), closed: make(chan struct{}), result: make(chan error, 1)}
	keeper := &keeper{now: k.now, renew: k.renew, tell: func(l lease) { k.leases = append(k.leases, l) }}
	go func() { k.result <- keeper.run(lease{length: length}, k.stop, k.closed) }()
	return k
}

func (k *kept) now() time.Duration { return time.Since(k.began) + time.Duration(k.suspended.Load()) }

func (k *kept) renew(within time.Duration) <-chan renewal {
	at := k.now()
	k.asked = append(k.asked, at)
	c := make(chan renewal, 1)
	left, delay, err := k.answer(at)
	if delay > within {
		delay, err = within, errors.New("timed out")
	}
	time.AfterFunc(delay, func() { c <- renewal{asked: at, left: left, err: err} })
	return c
}

// over waits until the lease is over, and returns when and why.
func (k *kept) over() (time.Duration, error) {
	k.Helper()
	err := <-k.result
	return k.now(), err
}

func TestLeaseIsRenewedAtAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t, 30*time.Second, func(time.Duration) (time.Duration, time.Duration, error) {
			return 30 * time.Second, time.Millisecond, nil
		})

		time.Sleep(time.Hour)
		close(k.stop)

		if _, err := k.over(); err != nil {
			t.Errorf("got %v, want a lease that is kept until it is stopped", err)
		}
		if got := len(k.asked); got < 359 || got > 360 {
			t.Errorf("got %d renewals in an hour, want one every 10 s", got)
		}
	})
}

func TestEachLeaseCountsFromBeforeItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t, 3*time.Second, func(time.Duration) (time.Duration, time.Duration, error) {
			return 3 * time.Second, 400 * time.Millisecond, nil
		})
		time.Sleep(2 * time.Second)
		close(k.stop)
		k.over()

		if got, want := k.leases[len(k.leases)-1].asked, k.asked[len(k.leases)-2]; got != want || want == 0 {
			t.Errorf("got a lease from %v, want it from when its request was sent, %v", got, want)
		}
	})
}

func TestLeaseThatCannotBeRenewedIsTriedToTheEndAndEndsBefore(t *testing.T) {
	broken := errors.New("broken")
	for name, delay := range map[string]time.Duration{"refused": 0, "silent": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const length = 10 * time.Second
				k := keepLease(t, length, func(time.Duration) (time.Duration, time.Duration, error) { return 0, delay, broken })

				at, err := k.over()

				if !errors.Is(err, ErrNotRenewed) {
					t.Errorf("got %v, want %v", err, ErrNotRenewed)
				}
				if want := length - Margin(length); at != want {
					t.Errorf("got the end after %v, want %v", at, want)
				}
				if last := k.asked[len(k.asked)-1]; len(k.asked) < 4 || last < length*7/10 {
					t.Errorf("got attempts at %v, want several until the end", k.asked)
				}
			})
		})
	}
}

func TestOneRenewalBetweenFailuresKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t, 10*time.Second, func(at time.Duration) (time.Duration, time.Duration, error) {
			if at > 9*time.Second && at < 10*time.Second {
				return 10 * time.Second, time.Millisecond, nil
			}
			return 0, time.Millisecond, errors.New("broken")
		})

		at, err := k.over()

		if !errors.Is(err, ErrNotRenewed) || at < 18*time.Second {
			t.Errorf("got %v after %v, want the second lease to run out", err, at)
		}
	})
}

func TestGrantThatTheServerDoesNotKnowIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t, 30*time.Second, func(time.Duration) (time.Duration, time.Duration, error) { return 0, time.Millisecond, nil })

		at, err := k.over()

		if want := 10*time.Second + time.Millisecond; !errors.Is(err, ErrNotHeld) || at != want {
			t.Errorf("got %v after %v, want %v after %v", err, at, ErrNotHeld, want)
		}
	})
}

func TestLeaseThatIsCutToNothingIsNotBlamedOnTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hold = time.Minute
		k := keepLease(t, 10*time.Second, func(at time.Duration) (time.Duration, time.Duration, error) {
			return min(10*time.Second, hold-at), time.Millisecond, nil
		})

		at, err := k.over()

		if !errors.Is(err, ErrMaxHold) || at >= hold || at < hold-time.Second {
			t.Errorf("got %v after %v, want %v just before %v", err, at, ErrMaxHold, hold)
		}
	})
}

// TestEndThatComesInSuspendIsNoticedBeforeTheLeaseIsOver lets the clock go on while timers stand still,
// so that the machine wakes at the moment in which the permit ends.
func TestEndThatComesInSuspendIsNoticedBeforeTheLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 30 * time.Second
		k := keepLease(t, length, func(time.Duration) (time.Duration, time.Duration, error) {
			return 0, time.Millisecond, errors.New("broken")
		})
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		k.suspended.Store(int64(length - Margin(length) - k.now()))

		at, err := k.over()

		if !errors.Is(err, ErrNotRenewed) || at >= length {
			t.Errorf("got %v after %v, want it before %v", err, at, length)
		}
	})
}

func TestWakingWithinTheLeaseKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t, 30*time.Second, func(time.Duration) (time.Duration, time.Duration, error) {
			return 30 * time.Second, time.Millisecond, nil
		})
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		k.suspended.Store(int64(27 * time.Second))
		time.Sleep(time.Minute)
		close(k.stop)

		if _, err := k.over(); err != nil || len(k.asked) < 6 {
			t.Errorf("got %v after %d renewals, want it kept", err, len(k.asked))
		}
	})
}

func TestGrantWithoutEndIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t, 0, func(time.Duration) (time.Duration, time.Duration, error) { return 0, 0, nil })
		time.Sleep(48 * time.Hour)
		close(k.closed)

		if _, err := k.over(); err != nil || len(k.asked) != 0 {
			t.Errorf("got %v after %d renewals, want none", err, len(k.asked))
		}
	})
}
