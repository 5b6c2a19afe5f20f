package tests

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

// longLease outlives every round of a crash test.
const longLease = 10 * time.Minute

// promise is a grant as its client knows it.
type promise struct {
	key, holder string
	permits     int64
	token, slot int64
	leaseSince  time.Time // the lease was asked for not before this
}

// place is what tells promises apart.
func (p promise) place() [2]string { return [2]string{p.key, p.holder} }

// ledger is what all clients were told, over all lives of a node.
type ledger struct {
	mu       sync.Mutex
	held     map[[2]string]promise // acknowledged, and not asked to be released
	open     map[[2]string]promise // asked for, or asked to be released, without an answer so far
	returned map[[2]string]promise // acknowledged as released
	tokens   map[int64]string      // all that were ever told
	highest  int64                 // token before the last kill
	granted  int
	released int
}

func newLedger() *ledger {
	return &ledger{
		held: map[[2]string]promise{}, open: map[[2]string]promise{},
		returned: map[[2]string]promise{}, tokens: map[int64]string{},
	}
}

// asked notes that the state of a promise is unknown until it is answered.
func (l *ledger) asked(p promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, p.place())
	l.open[p.place()] = p
}

// settled notes an answer that leaves nothing held.
func (l *ledger) settled(p promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, p.place())
}

// acquired notes a grant, or its renewal.
func (l *ledger) acquired(p promise) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, p.place())
	l.held[p.place()] = p
	before, known := l.tokens[p.token]
	if known && before != p.holder {
		return fmt.Errorf("token %d was given to %s and to %s", p.token, before, p.holder)
	}
	if !known && p.token <= l.highest {
		return fmt.Errorf("token %d of %s is not above %d, which was given out before a kill", p.token, p.holder, l.highest)
	}
	if !known {
		l.granted++
	}
	l.tokens[p.token] = p.holder
	return nil
}

// gaveBack notes a release.
func (l *ledger) gaveBack(p promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, p.place())
	l.returned[p.place()] = p
	l.released++
}

// verify compares a node that has come back with the ledger. No client is at work meanwhile.
func (l *ledger) verify(c *client) {
	c.Helper()
	for token := range l.tokens {
		l.highest = max(l.highest, token)
	}
	l.resolve(c)
	for _, p := range l.returned {
		c.want(0, "SEM.CHECK", p.key, p.holder, p.token)
	}
	clear(l.returned) // checked once; the listing shows them from now on
	for _, p := range l.held {
		l.stillHeld(c, p)
	}
	for key, capacity := range pools() {
		l.listing(c, key, capacity)
	}
}

// resolve ends whatever was under way at the kill, as a client does that does not know.
func (l *ledger) resolve(c *client) {
	c.Helper()
	for _, p := range l.open {
		c.do("SEM.CANCEL", p.key, p.holder)
		c.do("SEM.RELEASE", p.key, p.holder)
	}
	clear(l.open)
}

// stillHeld checks one promise: the same grant, and a lease that was not shortened.
func (l *ledger) stillHeld(c *client, p promise) {
	c.Helper()
	c.want(1, "SEM.CHECK", p.key, p.holder, p.token)
	got := c.acquire(p.key, "HOLDER", p.holder, "PERMITS", p.permits)
	if got.token != p.token || got.slot != p.slot || !got.replayed {
		c.Fatalf("after a kill: got %+v, want %+v again", got, p)
	}
	// A millisecond is lost to rounding.
	if least := (longLease - time.Since(p.leaseSince)).Milliseconds() - 1; got.leased < least {
		c.Fatalf("after a kill the lease of %+v has %d ms left, want at least %d", p, got.leased, least)
	}
}

// listing checks that exactly those hold who should, in places of their own.
func (l *ledger) listing(c *client, key string, capacity int64) {
	c.Helper()
	permits := int64(0)
	seen := map[[2]string]bool{}
	for cursor := "0"; ; {
		page, ok := c.do("SEM.HOLDERS", key, "CURSOR", cursor, "COUNT", 100).([]any)
		if !ok || len(page) != 2 {
			c.Fatalf("SEM.HOLDERS: got %v, want a page", page)
		}
		for _, row := range page[1].([]any) {
			holder := fmt.Sprint(row.([]any)[0])
			permits += row.([]any)[3].(int64)
			place := [2]string{key, holder}
			if _, known := l.held[place]; !known || seen[place] {
				c.Fatalf("after a kill %s holds a permit of %s that nobody was promised, or twice", holder, key)
			}
			seen[place] = true
		}
		if cursor = fmt.Sprint(page[0]); cursor == "0" {
			break
		}
	}
	if err := c.books(key, permits, capacity-permits, 0); err != nil {
		c.Fatalf("after a kill: %v", err)
	}
}

// thin releases most of what is held, so that rounds stay alike and releases are put to the test too.
func (l *ledger) thin(c *client) {
	c.Helper()
	const kept = 50
	var away []promise
	for _, p := range l.held { // in random order
		if len(l.held)-len(away) > kept {
			away = append(away, p)
		}
	}
	for _, p := range away {
		c.send("SEM.RELEASE", p.key, p.holder, "TOKEN", p.token)
	}
	for _, p := range away {
		if got := c.receive(); got != int64(1) {
			c.Fatalf("release of %+v: got %v, want 1", p, got)
		}
		delete(l.held, p.place())
		l.gaveBack(p)
	}
}

// drain lets all leases end; then every permit must be there again.
func (l *ledger) drain(t *testing.T, c *client) {
	t.Helper()
	for _, p := range l.held {
		c.want(300, "SEM.RENEW", p.key, p.holder, "LEASE", 300)
	}
	for key, capacity := range pools() {
		trial.Await(t, func() error { return c.books(key, 0, capacity, 0) })
	}
}
