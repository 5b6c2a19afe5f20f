package script

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semserver/semserver/semaphore"
)

// withoutPlain is a library whose serve leaves every request to the general cases.
func withoutPlain(t *testing.T, l *Library) *Library {
	t.Helper()
	source := strings.Replace(l.serve.Source, "local plain = cap and", "local plain = false and", 1)
	if source == l.serve.Source {
		t.Fatal("the plain cases cannot be switched off")
	}
	general := *l
	general.serve = newScript("serve", source)
	return &general
}

var aToken = regexp.MustCompile(`\d{10,}`)

// told is a result without what may differ: tokens, fractions of a lease, and which slots are taken when
// others fall free in the same call.
func told(r Result) string {
	if g, ok := r.Value.(*semaphore.Grant); ok {
		return fmt.Sprintf("grant permits=%d lease=%v replayed=%v", len(places(g)), g.Lease.Round(time.Minute), g.Replayed)
	}
	if n, ok := r.Value.(semaphore.Number); ok {
		return fmt.Sprint(time.Duration(n*1e6).Round(time.Second), n > 0)
	}
	return fmt.Sprintf("%v joins=%v %s", r.Value, r.Joins, aToken.ReplaceAllString(fmt.Sprint(r.Err), "N"))
}

func TestPlainCasesDoWhatTheGeneralOnesDo(t *testing.T) {
	plain := newRig(t)
	general := plain.beside()
	general.lib = withoutPlain(t, plain.lib)
	single := plain.beside()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		set := semaphore.Settings{Lease: semaphore.Set(time.Hour)}
		if rapid.Bool().Draw(t, "settings") {
			set.MaxLease, set.MaxHold = semaphore.Set(2*time.Hour), semaphore.Set(90*time.Minute)
		}
		rigs := map[string]*rig{fmt.Sprintf("p%d", n): plain, fmt.Sprintf("g%d", n): general, fmt.Sprintf("s%d", n): single}
		capacity := rapid.Int64Range(0, 8).Draw(t, "capacity")
		for key, r := range rigs {
			r.create(key, capacity, set)
		}
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			ops := rapid.SliceOfN(rapid.Custom(drawOp), 1, 12).Draw(t, "ops")
			results := map[string][]string{}
			for key, r := range rigs {
				results[key] = r.run(key, ops, r == single)
			}
			want := results[fmt.Sprintf("g%d", n)]
			for key, got := range results {
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("op %d of %s: got %s, want %s as in the general case", i, key, got[i], want[i])
					}
				}
			}
			want = []string{figures(general, fmt.Sprintf("g%d", n))}
			for key, r := range rigs {
				if got := figures(r, key); got != want[0] {
					t.Fatalf("figures of %s: got %s, want %s as in the general case", key, got, want[0])
				}
				slots := map[int64]string{}
				for _, row := range r.holders(key) {
					if other, taken := slots[row.Slot]; taken || row.Slot < 0 || row.Slot >= capacity {
						t.Fatalf("slot of %q: got %d of %d, which %q has", row.Holder, row.Slot, capacity, other)
					}
					slots[row.Slot] = row.Holder
				}
			}
		}
	})
}

// drawOp draws a request whose key is yet to be set, and whose token is 1 for "the right one".
func drawOp(t *rapid.T) semaphore.Request {
	holder := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "\x00f"}).Draw(t, "holder")
	token := rapid.Int64Range(0, 2).Draw(t, "token")
	lease := rapid.SampledFrom([]time.Duration{0, time.Hour, 3 * time.Hour, semaphore.Persist}).Draw(t, "lease")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1:
		return semaphore.Acquire{
			Holder: holder, Permits: rapid.SampledFrom([]int64{1, 1, 1, 2}).Draw(t, "permits"), Lease: lease,
			Wait: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "wait"), Fresh: rapid.IntRange(0, 5).Draw(t, "fresh") == 0,
		}
	case 2, 3:
		return semaphore.Release{Holder: holder, Token: token}
	case 4:
		return semaphore.Renew{Holder: holder, Token: token, Lease: lease}
	}
	return semaphore.Check{Holder: holder, Token: token}
}

// run carries out ops on a semaphore, in one call or one by one.
func (r *rig) run(key string, ops []semaphore.Request, single bool) []string {
	tokens := map[string]int64{}
	for _, row := range r.holders(key) {
		tokens[row.Holder] = row.Token
	}
	right := func(token int64, holder string) int64 {
		if token == 1 && tokens[holder] > 0 {
			return tokens[holder]
		}
		return token
	}
	s := &Step{}
	for i, op := range ops {
		switch q := op.(type) {
		case semaphore.Acquire:
			q.Key = key
			op = q
		case semaphore.Release:
			q.Key, q.Token = key, right(q.Token, q.Holder)
			op = q
		case semaphore.Renew:
			q.Key, q.Token = key, right(q.Token, q.Holder)
			op = q
		case semaphore.Check:
			q.Key, q.Token = key, right(q.Token, q.Holder)
			op = q
		}
		s.Ops = append(s.Ops, Op{Request: op, Ticket: semaphore.Ticket{Incarnation: r.server, Number: r.serial*100 + uint64(i) + 1}})
	}
	var results []string
	if !single {
		for _, result := range r.step(key, s).Ops {
			results = append(results, told(result))
		}
		return results
	}
	joined := false
	for _, op := range s.Ops {
		// Who joined comes before those who ask later in the same call; by itself, a call does not know.
		a, isAcquire := op.Request.(semaphore.Acquire)
		step := &Step{Ops: []Op{op}}
		if joined && isAcquire {
			step.Behind, step.Head = true, 1
		}
		result := r.step(key, step).Ops[0]
		joined = joined || isAcquire && result.Joins && a.Wait > 0
		results = append(results, told(result))
	}
	// That nobody waits any more is known to the next call.
	r.step(key, &Step{})
	return results
}

// holders lists all live grants.
func (r *rig) holders(key string) []semaphore.HolderRow {
	r.Helper()
	var rows []semaphore.HolderRow
	for cursor := uint64(0); ; {
		raw, err := r.send(r.lib.Holders(semaphore.Holders{Key: key, Cursor: cursor, Count: 100}))
		if err != nil {
			r.Fatal(err)
		}
		a, err := ReadHolders(raw)
		if err != nil || a.Err != nil {
			r.Fatalf("holders: %v, %v", err, a.Err)
		}
		page := a.Value.(*semaphore.HolderPage)
		rows = append(rows, page.Rows...)
		if cursor = page.Next; cursor == 0 {
			return rows
		}
	}
}

// figures are what must be the same whichever way a semaphore came there.
func figures(r *rig, key string) string {
	i := r.info(key)
	c := i.Counters
	return fmt.Sprint(i.Usage, i.Excess, i.Missing, i.Surplus, i.Rows, i.Holders, c.GrantsImmediate, c.Refused, c.Releases, c.Renewals, c.Expirations,
		r.do("LLEN", r.lib.layout.Permits(key)), r.do("ZCARD", r.lib.layout.Holders(key)))
}
