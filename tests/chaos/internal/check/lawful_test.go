package check

import (
	"testing"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
)

func stopped(from, to time.Duration, nodes ...int) history.Fault {
	return history.Fault{From: from, To: to, What: "stopped", Mute: nodes}
}

// lawful histories look wrong and are not.
func lawful() map[string]history.Log {
	fresh := get("a", 2, 0)
	fresh.Fresh = true
	onStopped := silent("a")
	onStopped.Node = 3
	return map[string]history.Log{
		"nothing": {},
		"a lost reply, and its repeat": recorded([]history.Op{
			at(0, 10, lost(acquire("a"))), at(20, 30, again("a", 1, 0, 19*second/10)), at(40, 50, release("a", 1, 1)), at(60, 70, get("b", 2, 0)),
		}),
		"a lost reply fills the semaphore": recorded([]history.Op{at(0, 10, lost(acquire("a"))), at(20, 30, acquire("b"))}),
		"a lost reply of nothing":          recorded([]history.Op{at(0, 10, lost(acquire("a"))), at(20, 30, get("b", 1, 0))}),
		"a lost request holds a permit unseen": recorded([]history.Op{
			at(0, 10, lost(acquire("a"))), at(20, 30, release("a", 0, 1)), at(40, 50, get("b", 2, 0)),
		}),
		"a lost release that took effect": recorded([]history.Op{
			at(0, 10, get("a", 1, 0)), at(20, 30, lost(release("a", 1, 1))), at(40, 50, get("b", 2, 0)),
		}),
		"a lost release that did not": recorded([]history.Op{
			at(0, 10, get("a", 1, 0)), at(20, 30, lost(release("a", 1, 1))), at(40, 50, check("a", 1, 1)), at(60, 70, acquire("b")),
		}),
		"a lost renewal": recorded([]history.Op{
			at(0, 10, get("a", 1, 0)), at(1900, 1910, lost(renew("a", 1, 2*second))), at(3800, 3810, check("a", 1, 1)), at(3950, 3960, get("b", 2, 0)),
		}),
		"a lease ends and the next takes over": recorded([]history.Op{
			at(0, 10, get("a", 1, 0)), at(1990, 2000, get("b", 2, 0)), at(2010, 2020, renew("a", 1, 0)), at(2030, 2040, release("b", 2, 1)),
		}),
		"a waiter's lease counts from its grant": recorded([]history.Op{
			at(0, 10, get("x", 1, 0)), at(20, 1900, waits(get("a", 2, 0), 5*second)), at(1880, 1890, release("x", 1, 1)),
			at(3800, 3850, check("a", 2, 1)), at(3900, 3910, get("b", 3, 0)),
		}),
		"fresh takes its own place": recorded([]history.Op{
			at(0, 10, get("a", 1, 0)), at(20, 30, fresh), at(40, 50, check("a", 1, 0)), at(60, 70, check("a", 2, 1)),
		}),
		"whoever is first in line is served first": recorded([]history.Op{
			at(0, 10, get("x", 1, 0)), at(20, 430, waits(get("a", 2, 0), 5*second)), at(30, 40, line("a")),
			at(50, 500, waits(get("b", 3, 0), 5*second)), at(400, 410, release("x", 1, 1)), at(440, 450, release("a", 2, 1)),
		}),
		"who comes back has the place it had": recorded([]history.Op{
			at(0, 10, get("x", 1, 0)), at(20, 30, lost(waits(acquire("b"), 5*second))), at(40, 600, waits(get("a", 3, 0), 5*second)),
			at(50, 60, line("b", "a")), at(70, 500, waits(get("b", 2, 0), 5*second)), at(400, 410, release("x", 1, 1)), at(510, 520, release("b", 2, 1)),
		}),
		"who comes back too late has a new place": recorded([]history.Op{
			at(0, 10, get("x", 1, 0)), at(20, 100, lost(waits(acquire("a"), 5*second))), at(30, 40, line("a")),
			at(50, 1900, waits(get("b", 2, 0), 5*second)), at(3000, 3900, waits(get("a", 3, 0), 5*second)),
			at(1800, 1810, release("x", 1, 1)), at(3700, 3710, release("b", 2, 1)),
		}),
		"a small one is refused behind a large one": recorded([]history.Op{
			at(0, 10, inTwo(get("x", 1, 0))), at(20, 1030, large(waits(inTwo(acquire("a")), second))), at(40, 50, inTwo(acquire("b"))),
		}),
		"a stopped node is silent": {
			Ops: []history.Op{at(0, 9000, onStopped)}, Faults: []history.Fault{stopped(0, 8*second, 3)},
		},
		"what a stopped node kept comes late": {
			Ops:    recorded([]history.Op{at(0, 10, lost(acquire("a"))), at(29_000, 29_010, acquire("b"))}).Ops,
			Faults: []history.Fault{stopped(0, 28*second, 3)},
		},
		"a lease waits for a leader": recorded([]history.Op{at(0, 10, get("a", 1, 0)), at(8000, 8010, check("a", 1, 1)), at(8020, 8030, acquire("b"))}),
		"changes of leader put off the end": {
			Ops:    recorded(append(busy("two", 5000), at(0, 10, get("a", 1, 0)), at(4500, 4510, check("a", 1, 1)))).Ops,
			Reigns: []history.Reign{{Seen: second, Node: 1, Term: 2}, {Seen: 2 * second, Node: 2, Term: 3}},
		},
	}
}

func large(o history.Op) history.Op { o.Permits = 2; return o }

func TestLawfulHistoriesPass(t *testing.T) {
	for name, l := range lawful() {
		t.Run(name, func(t *testing.T) { lawfulIs(t, l) })
	}
}

func lawfulIs(t *testing.T, l history.Log) {
	t.Helper()
	for _, v := range Promises(l, testSetup()) {
		t.Errorf("got %v, want no promise broken", v)
	}
	for _, v := range Linearizable(l, testSetup(), limit) {
		if !v.Linear {
			t.Errorf("%s: got no order (undecided: %v), want one\n%s", v.Key, v.Undecided, v.What)
		}
	}
}
