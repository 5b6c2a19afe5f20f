package guard

import (
	"errors"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
)

const lease = 30 * time.Second

func lost(reason error) error { return &client.LostError{Name: "loader", Reason: reason} }

func TestCommandIsAskedAGraceBeforeTheEndAndKilledInTime(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		left time.Duration
		want step
	}{
		{lease, goOn}, {5260 * time.Millisecond, goOn}, {5250 * time.Millisecond, ask}, {time.Second, ask},
		{251 * time.Millisecond, ask}, {250 * time.Millisecond, kill}, {0, kill},
	} {
		d := newDeadline(lease, 0)
		got, wait := d.look(now, c.left, nil)
		if got != c.want {
			t.Errorf("%v before the end: got step %v, want %v", c.left, got, c.want)
		}
		if next, _ := d.look(now.Add(wait), c.left-wait, nil); got != kill && next != got+1 {
			t.Errorf("%v before the end: after %v got step %v, want the next one", c.left, wait, next)
		}
	}
}

func TestGraceIsAsGivenOrAShareOfTheLease(t *testing.T) {
	for _, c := range []struct{ lease, grace, want, lead time.Duration }{
		{30 * time.Second, 0, 5 * time.Second, 250 * time.Millisecond},
		{30 * time.Second, 2 * time.Second, 2 * time.Second, 250 * time.Millisecond},
		{time.Hour, 0, 10 * time.Second, 250 * time.Millisecond},
		{time.Second, 0, time.Second / 6, 30 * time.Millisecond},
	} {
		if d := newDeadline(c.lease, c.grace); d.grace != c.want || d.lead != c.lead {
			t.Errorf("lease %v: got grace %v and lead %v, want %v and %v", c.lease, d.grace, d.lead, c.want, c.lead)
		}
	}
}

func TestCommandWhosePermitIsTakenHasItsGraceButNotMoreThanItsLease(t *testing.T) {
	now := time.Now()
	taken := lost(client.ErrNotHeld)

	d := newDeadline(lease, 0)
	d.look(now, 20*time.Second, nil)
	if got, wait := d.look(now, 0, taken); got != ask || wait != 5*time.Second {
		t.Errorf("got step %v and %v, want it asked, and killed after the grace", got, wait)
	}
	if got, _ := d.look(now.Add(4*time.Second), 0, taken); got != ask {
		t.Errorf("within the grace: got step %v, want %v", got, ask)
	}
	if got, _ := d.look(now.Add(5*time.Second), 0, taken); got != kill {
		t.Errorf("after the grace: got step %v, want %v", got, kill)
	}

	d = newDeadline(lease, 0)
	d.look(now, 2*time.Second, nil)
	if got, _ := d.look(now.Add(1750*time.Millisecond), 0, taken); got != kill {
		t.Errorf("at the end of what was its lease: got step %v, want %v", got, kill)
	}
}

func TestCommandWhoseLeaseIsOverIsKilledAtOnce(t *testing.T) {
	now := time.Now()
	for _, reason := range []error{client.ErrNotRenewed, client.ErrMaxHold, errors.New("closed")} {
		d := newDeadline(lease, 0)
		d.look(now, lease, nil)
		if got, _ := d.look(now.Add(time.Second), 0, lost(reason)); got != kill {
			t.Errorf("%v: got step %v, want %v", reason, got, kill)
		}
	}
	d := newDeadline(lease, 0)
	d.look(now, lease, nil)
	if got, _ := d.look(now.Add(time.Minute), 0, lost(client.ErrNotHeld)); got != kill {
		t.Errorf("taken, and noticed after the lease: got step %v, want %v", got, kill)
	}
}

func TestLongestGraceLeavesTimeToRenewALease(t *testing.T) {
	for _, lease := range []time.Duration{client.MinLease, 300 * time.Millisecond, 500 * time.Millisecond, time.Second, 30 * time.Second, time.Hour} {
		d := newDeadline(lease, LongestGrace(lease))
		renewed := lease/3 + lease/10
		if got, _ := d.look(time.Now(), lease-client.Margin(lease)-renewed, nil); got != goOn {
			t.Errorf("lease %v, grace %v: after %v got step %v, want that it goes on", lease, d.grace, renewed, got)
		}
	}
}
