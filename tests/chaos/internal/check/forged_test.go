package check

import (
	"testing"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

// forgery is a history that breaks a promise.
type forgery struct {
	name    string
	promise string
	ops     []history.Op
	// subtle is that the search for an order does not see it: it concerns more than the order.
	subtle bool
}

func forgeries() []forgery {
	return []forgery{
		{"over capacity", "capacity", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, get("b", 2, 0))}, false},
		{"two in one slot", "slots", []history.Op{at(0, 10, inTwo(get("a", 1, 0))), at(20, 30, inTwo(get("b", 2, 0)))}, false},
		{"a slot that is none", "slots", []history.Op{at(0, 10, get("a", 1, 1))}, true},
		{"decreasing token", "tokens", []history.Op{at(0, 10, get("a", 7, 0)), at(20, 30, release("a", 7, 1)), at(40, 50, get("b", 6, 0))}, false},
		{"one token for two", "tokens", []history.Op{at(0, 10, get("a", 7, 0)), at(20, 30, release("a", 7, 1)), at(40, 50, get("b", 7, 0))}, false},
		{"one token for two grants of a holder", "tokens", []history.Op{at(0, 10, get("a", 7, 0)), at(20, 30, get("a", 7, 0))}, false},
		{"a repeat of nothing", "tokens", []history.Op{at(0, 10, again("a", 7, 0, second))}, false},
		{"lost acknowledged grant", "acknowledged grants", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, check("a", 1, 0))}, false},
		{"lost grant is granted anew", "acknowledged grants", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, get("a", 2, 0))}, false},
		{"lost grant is refused to its holder", "acknowledged grants", []history.Op{at(0, 10, inTwo(get("a", 1, 0))), at(20, 30, inTwo(acquire("a")))}, false},
		{"lost renewal", "acknowledged grants", []history.Op{at(0, 10, get("a", 1, 0)), at(1500, 1510, renew("a", 1, 2*second)), at(3000, 3010, release("a", 1, 0))}, false},
		{"lost release", "releases", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, release("a", 1, 1)), at(40, 50, check("a", 1, 1))}, false},
		{"a moved slot", "acknowledged grants", []history.Op{at(0, 10, inTwo(get("a", 1, 0))), at(20, 30, inTwo(again("a", 1, 1, second*19/10)))}, true},
		{"a lease cut short", "acknowledged grants", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, again("a", 1, 0, second))}, true},
		{"a lease made longer", "acknowledged grants", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, again("a", 1, 0, 3*second))}, true},
		{"a lease shorter than asked", "leases", []history.Op{at(0, 10, shorter(get("a", 1, 0)))}, true},
		{"a renewal shorter than asked", "leases", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, shorter(renew("a", 1, second)))}, true},
		{"early expiry", "acknowledged grants", []history.Op{at(0, 10, get("a", 1, 0)), at(1900, 1910, renew("a", 1, 0))}, false},
		{"early expiry, told by a successor", "capacity", []history.Op{at(0, 10, get("a", 1, 0)), at(1900, 1910, get("b", 2, 0))}, false},
		{"revived lease", "releases", []history.Op{at(0, 10, get("a", 1, 0)), at(2500, 2510, check("a", 1, 0)), at(2600, 2610, renew("a", 1, 2*second))}, false},
		{"late expiry", "lease ends", append(busy("two", 5000), at(0, 10, get("a", 1, 0)), at(4000, 4010, check("a", 1, 1))), true},
		{"double release", "releases", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, release("a", 1, 1)), at(25, 35, release("a", 1, 1))}, false},
		{"overtaking in the line", "line", []history.Op{
			at(0, 10, get("x", 1, 0)), at(20, 900, waits(get("a", 3, 0), 5*second)), at(30, 40, line("a")),
			at(50, 500, waits(get("b", 2, 0), 5*second)), at(400, 410, release("x", 1, 1)), at(600, 610, release("b", 2, 1)),
		}, true},
		{"overtaking one who never got there", "line", []history.Op{
			at(0, 10, get("x", 1, 0)), at(20, 1030, waits(acquire("a"), second)), at(30, 40, line("a")),
			at(50, 500, waits(get("b", 2, 0), 5*second)), at(400, 410, release("x", 1, 1)),
		}, true},
		{"a place that is lost with its node", "line", []history.Op{
			at(0, 10, get("x", 1, 0)), at(20, 100, lost(waits(acquire("a"), 5*second))), at(30, 40, line("a")),
			at(50, 500, waits(get("b", 2, 0), 5*second)), at(110, 900, waits(get("a", 3, 0), 5*second)),
			at(400, 410, release("x", 1, 1)), at(600, 610, release("b", 2, 1)),
		}, true},
		{"unanswered request", "answers", []history.Op{at(0, 9000, silent("a"))}, true},
		{"late answer", "answers", []history.Op{at(0, 10, get("x", 1, 0)), at(20, 3000, waits(acquire("a"), second)), at(1900, 1910, renew("x", 1, 2*second))}, true},
		{"early null", "answers", []history.Op{at(0, 10, get("x", 1, 0)), at(20, 900, waits(acquire("a"), second))}, true},
		{"null although there is room", "", []history.Op{at(0, 10, acquire("a"))}, false},
		{"grant after null", "answers", []history.Op{at(0, 10, get("x", 1, 0)), at(20, 30, acquire("a")), at(40, 50, release("x", 1, 1)), at(60, 70, release("a", 0, 1))}, false},
		{"grant after a refusal", "answers", []history.Op{at(0, 10, refusedHolder("a")), at(60, 70, release("a", 0, 1))}, false},
		{"refused for no reason", "answers", []history.Op{at(0, 10, refused(acquire("a"), "CONFLICT"))}, true},
		{"books above capacity", "capacity", []history.Op{at(0, 10, books(2))}, false},
		{"books of nobody", "", []history.Op{at(0, 10, get("a", 1, 0)), at(20, 30, release("a", 1, 1)), at(40, 50, books(1))}, false},
		{"books without a holder", "", []history.Op{at(0, 10, get("a", 1, 0)), at(40, 50, books(0)), at(60, 70, release("a", 1, 1))}, false},
		{"a permit that nobody holds is not given", "", []history.Op{
			at(0, 10, get("a", 1, 0)), at(20, 30, release("a", 1, 1)), at(40, 50, acquire("b")), at(60, 70, get("c", 2, 0)),
		}, false},
	}
}

func TestForgedHistoriesAreRefused(t *testing.T) {
	for _, f := range forgeries() {
		t.Run(f.name, func(t *testing.T) {
			l := recorded(f.ops)
			found := Promises(l, testSetup())
			if f.promise == "" && len(found) > 0 {
				t.Errorf("promises: got %v, want none broken", found)
			}
			if f.promise != "" && !breaks(found, f.promise) {
				t.Errorf("promises: got %v, want %s broken", found, f.promise)
			}
			for _, v := range Linearizable(l, testSetup(), limit) {
				if v.Undecided {
					t.Errorf("%s: got no decision, want one", v.Key)
				}
				if v.Key == f.ops[len(f.ops)-1].Key && v.Linear != f.subtle {
					t.Errorf("%s: got an order: %v, want %v\n%s", v.Key, v.Linear, f.subtle, v.What)
				}
			}
		})
	}
}

func breaks(found []Violation, promise string) bool {
	for _, v := range found {
		if v.Promise == promise {
			return true
		}
	}
	return false
}
