package fsm

import (
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func renew(holder string) semaphore.Renew { return semaphore.Renew{Key: "k", Holder: holder} }

// aged returns a node on which a has held the only permit for 100 ms, for ever, b waits for it, and
// MAXHOLD has come down to 100 ms since.
func aged(t *testing.T, settings semaphore.Settings) (n *node, token int64) {
	t.Helper()
	n = newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	g := n.grant(n.at(0, acquire("a", 1, semaphore.Persist, 0)))
	wantInLine(t, n.at(0, acquire("b", 1, 0, time.Minute)))
	settings.MaxHold = semaphore.Set(ms(100))
	n.at(100, semaphore.Resize{Key: "k", Capacity: 1, Settings: settings})
	return n, g.Token
}

func TestLowerMaxHoldAloneLeavesLeasesAsTheyAre(t *testing.T) {
	n, token := aged(t, semaphore.Settings{})
	wantNumber(t, n.at(5000, semaphore.Check{Key: "k", Holder: "a", Token: token}), 1)
	if info := n.info(5000, "k"); info.Holders != 1 || info.Waiters != 1 || info.Counters.Expirations != 0 {
		t.Errorf("got %+v, want a holding and b waiting", info)
	}
}

func TestRenewThatMaxHoldMakesImpossibleEndsTheLease(t *testing.T) {
	n, token := aged(t, semaphore.Settings{})
	wantNumber(t, n.at(250, renew("a")), 0)
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want b", got)
	}
	wantNumber(t, n.at(250, semaphore.Check{Key: "k", Holder: "a", Token: token}), 0)
	wantNumber(t, n.at(250, release("a")), 0)
	info := n.info(250, "k")
	if c := info.Counters; c.Expirations != 1 || c.Renewals != 0 || c.Releases != 0 || c.HeldTotal != ms(250) {
		t.Errorf("got %+v, want one expiration after 250 ms", c)
	}
	rows := n.one(n.at(250, semaphore.Holders{Key: "k", Count: 10})).(*semaphore.HolderPage).Rows
	if len(rows) != 1 || rows[0].Holder != "b" {
		t.Errorf("got holders %+v, want b alone", rows)
	}
}

func TestLeaseThatARenewEndsIsQuarantined(t *testing.T) {
	n, _ := aged(t, semaphore.Settings{Quarantine: semaphore.Set(ms(50))})
	wantNumber(t, n.at(250, renew("a")), 0)
	if info := n.info(299, "k"); info.Quarantined != 1 || info.InUse != 0 || info.Waiters != 1 {
		t.Errorf("got %+v, want the permit in quarantine", info)
	}
	n.at(300)
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want b", got)
	}
}

// TestLeaseThatARenewEndsIsOverInABacklog has nothing processed in the entry of the renewal.
func TestLeaseThatARenewEndsIsOverInABacklog(t *testing.T) {
	n, token := aged(t, semaphore.Settings{})
	small(n.s, 0, 0)
	wantNumber(t, n.at(250, renew("a")), 0)
	wantNumber(t, n.at(250, semaphore.Check{Key: "k", Holder: "a", Token: token}), 0)
	if info := n.info(250, "k"); info.Holders != 0 || info.Counters.Expirations != 1 {
		t.Errorf("got %+v, want nobody holding", info)
	}
	if next, ok := n.s.Next(); !ok || next > n.s.Now() {
		t.Errorf("got next %v, want the work to go on at once", next)
	}
	small(n.s, portion, allowance)
	n.at(250)
	if got := n.grantees(); len(got) != 1 || got[0] != "b" {
		t.Errorf("got grants to %v, want b", got)
	}
}

// TestGiveBackOfAFreshGrantUndoesARenewal takes back what FRESH made of a grant, be it one made at once
// or to a waiter, also after a snapshot.
func TestGiveBackOfAFreshGrantUndoesARenewal(t *testing.T) {
	for _, holder := range []string{"a", "b"} {
		t.Run(holder, func(t *testing.T) {
			n := newNode(t)
			n.at(0, semaphore.Create{Key: "k", Capacity: 1})
			n.grant(n.at(0, acquire("a", 1, 0, 0)))
			if holder == "b" {
				wantInLine(t, n.at(0, acquire("b", 1, 0, time.Minute)))
				wantNumber(t, n.at(0, release("a")), 1)
			}
			before := n.info(0, "k").Counters
			again := acquire(holder, 1, 0, 0)
			again.Fresh = true
			g := n.grant(n.at(40, again))
			n.s = restored(t, snapshotOf(t, n.s))
			wantNumber(t, n.at(41, GiveBack{Key: "k", Holder: holder, Token: g.Token, Ticket: g.Ticket}), 1)
			info, want := n.info(41, "k"), before
			want.HeldTotal += ms(40)
			if info.Counters != want || info.Holders != 0 {
				t.Errorf("got %+v, want %+v and nobody holding", info, want)
			}
			if s := n.s.Stats(); s.GivenBack != 1 || s.Holders != 0 {
				t.Errorf("got %+v, want one given back", s)
			}
		})
	}
}

func TestRenewalOfAFreshGrantKeepsItFromBeingGivenBack(t *testing.T) {
	n := newNode(t)
	n.at(0, semaphore.Create{Key: "k", Capacity: 1})
	n.grant(n.at(0, acquire("a", 1, 0, 0)))
	again := acquire("a", 1, 0, 0)
	again.Fresh = true
	g := n.grant(n.at(0, again))
	n.at(1, renew("a"))
	wantNumber(t, n.at(1, GiveBack{Key: "k", Holder: "a", Token: g.Token, Ticket: g.Ticket}), 0)
	if c := n.info(1, "k").Counters; c.Renewals != 2 || c.GrantsImmediate != 1 {
		t.Errorf("got %+v, want two renewals of one grant", c)
	}
}
