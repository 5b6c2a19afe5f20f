package server

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func testRules() *rules {
	return &rules{
		maxWait: time.Hour, maxLease: 24 * time.Hour, label: "me 127.0.0.1:5",
		capacities: []capacityRule{{compileGlob("api:*"), 20}, {compileGlob("*:x"), 3}},
	}
}

// parse parses a command of the table.
func parse(words ...string) (call, *semaphore.Error) {
	var args [][]byte
	for _, w := range words[1:] {
		args = append(args, []byte(w))
	}
	return newTable().find([]byte(words[0])).request(testRules(), &arguments{}, args)
}

func TestParse(t *testing.T) {
	ms := time.Millisecond
	for line, want := range map[string]semaphore.Request{
		"SEM.ACQUIRE k HOLDER h": semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Label: "me 127.0.0.1:5"},
		"sem.acquire k slots holder h permits 3 wait 3600000 lease 86400000 label l fresh capacity 0": semaphore.Acquire{
			Key: "k", Holder: "h", Permits: 3, Wait: time.Hour, Lease: 24 * time.Hour, Label: "l", Fresh: true, Create: true},
		"SEM.ACQUIRE k HOLDER h PERSIST WAIT 0":       semaphore.Acquire{Key: "k", Holder: "h", Permits: 1, Lease: semaphore.Persist, Label: "me 127.0.0.1:5"},
		"SEM.ACQUIRE api:x HOLDER h LABEL l":          semaphore.Acquire{Key: "api:x", Holder: "h", Permits: 1, Create: true, Capacity: 20, Label: "l"},
		"SEM.ACQUIRE b:x HOLDER h LABEL l":            semaphore.Acquire{Key: "b:x", Holder: "h", Permits: 1, Create: true, Capacity: 3, Label: "l"},
		"SEM.ACQUIRE b:x HOLDER h LABEL l CAPACITY 9": semaphore.Acquire{Key: "b:x", Holder: "h", Permits: 1, Create: true, Capacity: 9, Label: "l"},
		"SEM.CREATE k 0":                              semaphore.Create{Key: "k"},
		"SEM.CREATE k 5 LEASE 1 MAXLEASE 2 MAXHOLD 3 QUARANTINE 0 IDLE 5 MINTOKEN 7 IFABSENT": semaphore.Create{
			Key: "k", Capacity: 5, MinToken: 7, IfAbsent: true, Settings: semaphore.Settings{
				Lease: semaphore.Set(ms), MaxLease: semaphore.Set(2 * ms), MaxHold: semaphore.Set(3 * ms), Quarantine: semaphore.Set(0), Idle: semaphore.Set(5 * ms)}},
		"SEM.RELEASE k h":                semaphore.Release{Key: "k", Holder: "h"},
		"SEM.RELEASE k h TOKEN 7":        semaphore.Release{Key: "k", Holder: "h", Token: 7},
		"SEM.RENEW k h":                  semaphore.Renew{Key: "k", Holder: "h"},
		"SEM.RENEW k h TOKEN 7 LEASE 9":  semaphore.Renew{Key: "k", Holder: "h", Token: 7, Lease: 9 * ms},
		"SEM.RENEW k h PERSIST":          semaphore.Renew{Key: "k", Holder: "h", Lease: semaphore.Persist},
		"SEM.CANCEL k h":                 semaphore.Cancel{Key: "k", Holder: "h"},
		"SEM.CHECK k h 9007199254740991": semaphore.Check{Key: "k", Holder: "h", Token: semaphore.MaxCapacity},
		"SEM.RECONCILE k":                semaphore.Reconcile{Key: "k"},
		"SEM.RECONCILE k CAPACITY 4":     semaphore.Reconcile{Key: "k", Adopt: true, Capacity: 4},
		"SEM.RESIZE k 9007199254740991":  semaphore.Resize{Key: "k", Capacity: semaphore.MaxCapacity},
		"SEM.INFO k":                     semaphore.Inspect{Key: "k"},
		"SEM.HOLDERS k":                  semaphore.Holders{Key: "k", Count: semaphore.DefaultCount},
		"SEM.HOLDERS k COUNT 9999999 CURSOR 18446744073709551615": semaphore.Holders{Key: "k", Cursor: math.MaxUint64, Count: semaphore.MaxCount},
		"SEM.WAITERS k CURSOR 0 COUNT 1":                          semaphore.Waiters{Key: "k", Count: 1},
		"SEM.SCAN 5 MATCH a* COUNT 2":                             semaphore.Scan{Cursor: 5, Count: 2},
		"SEM.DELETE k":                                            semaphore.Delete{Key: "k"},
		"SEM.DELETE k FORCE":                                      semaphore.Delete{Key: "k", Force: true},
	} {
		got, err := parse(strings.Fields(line)...)
		if err != nil || !reflect.DeepEqual(got.request, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", line, got.request, err, want)
		}
	}
}

func TestParseRefusesByNamingTheArgument(t *testing.T) {
	long := strings.Repeat("x", semaphore.MaxName+1)
	for line, want := range map[string]string{
		"SEM.ACQUIRE k HOLDER":                       "HOLDER needs a value",
		"SEM.ACQUIRE k NONSENSE 1":                   "unknown option 'NONSENSE'",
		"SEM.ACQUIRE k FORCE":                        "unknown option 'FORCE'",
		"SEM.ACQUIRE k LEASE 5000 LEASE 6000":        "LEASE is given twice",
		"SEM.ACQUIRE k HOLDER h LEASE 5 PERSIST":     "LEASE and PERSIST exclude each other",
		"SEM.ACQUIRE k PERSIST":                      "PERSIST needs a HOLDER: nobody could release the grant if its answer were lost",
		"SEM.ACQUIRE k PERMITS 0":                    "PERMITS must be a whole number from 1 to 9007199254740991",
		"SEM.ACQUIRE k PERMITS 9007199254740992":     "PERMITS must be a whole number from 1 to 9007199254740991",
		"SEM.ACQUIRE k PERMITS 18446744073709551616": "PERMITS must be a whole number from 1 to 9007199254740991",
		"SEM.ACQUIRE k CAPACITY -1":                  "CAPACITY must be a whole number from 0 to 9007199254740991",
		"SEM.ACQUIRE k WAIT +1":                      "WAIT must be a whole number of milliseconds from 0 to 3600000, the server's --max-wait",
		"SEM.ACQUIRE k WAIT 3600001":                 "WAIT must be a whole number of milliseconds from 0 to 3600000, the server's --max-wait",
		"SEM.ACQUIRE k LEASE 0":                      "LEASE must be a whole number of milliseconds from 1 to 86400000, the server's --max-lease",
		"SEM.ACQUIRE k LEASE 1.5":                    "LEASE must be a whole number of milliseconds from 1 to 86400000, the server's --max-lease",
		"SEM.ACQUIRE k LEASE 9223372036854775808":    "LEASE must be a whole number of milliseconds from 1 to 86400000, the server's --max-lease",
		"SEM.ACQUIRE k LEASE 86400001":               "LEASE must be a whole number of milliseconds from 1 to 86400000, the server's --max-lease",
		"SEM.ACQUIRE k HOLDER " + long:               "HOLDER is longer than 1024 bytes",
		"SEM.ACQUIRE k LABEL " + long:                "LABEL is longer than 1024 bytes",
		"SEM.ACQUIRE " + long:                        "key is longer than 1024 bytes",
		"SEM.CREATE k many":                          "capacity must be a whole number from 0 to 9007199254740991",
		"SEM.CREATE k 1 LEASE 9 MAXLEASE 8":          "LEASE is above MAXLEASE",
		"SEM.CREATE k 1 MINTOKEN 4503599627370497":   "MINTOKEN must be a whole number from 0 to 4503599627370496",
		"SEM.CREATE k 1 IFABSENT IFABSENT":           "IFABSENT is given twice",
		"SEM.RESIZE k 1 MAXHOLD 0":                   "MAXHOLD must be a whole number of milliseconds from 1 to 3153600000000",
		"SEM.RESIZE k 1 MINTOKEN 1":                  "unknown option 'MINTOKEN'",
		"SEM.RELEASE k h TOKEN 0":                    "TOKEN must be a whole number from 1 to 9007199254740991",
		"SEM.CHECK k h 0":                            "token must be a whole number from 1 to 9007199254740991",
		"SEM.RENEW k h LEASE 0":                      "LEASE must be a whole number of milliseconds from 1 to 86400000, the server's --max-lease",
		"SEM.RENEW k h PERSIST LEASE 1":              "LEASE and PERSIST exclude each other",
		"SEM.SCAN x":                                 "cursor must be a cursor that this command returned, or 0",
		"SEM.SCAN 0 COUNT 0":                         "COUNT must be a whole number from 1 to 4611686018427387904",
		"SEM.HOLDERS k CURSOR -1":                    "CURSOR must be a cursor that this command returned, or 0",
	} {
		_, err := parse(strings.Fields(line)...)
		if err == nil || err.Code != semaphore.CodeInvalid || err.Message != want {
			t.Errorf("%.60s:\ngot  %v\nwant ERR %s", line, err, want)
		}
	}
	for _, words := range [][]string{{"SEM.ACQUIRE", ""}, {"SEM.RELEASE", "k", ""}, {"SEM.ACQUIRE", "k", "HOLDER", ""}, {"SEM.ACQUIRE", "k", "LEASE", ""}} {
		if _, err := parse(words...); err == nil {
			t.Errorf("%q was accepted", words)
		}
	}
}

func TestKeysOfSuccessiveCommandsAreToldApart(t *testing.T) {
	info, words := newTable().find([]byte("SEM.INFO")), &arguments{}
	for _, key := range []string{"a", "a", "b", "a", "aa", "a", "", "a", strings.Repeat("a", semaphore.MaxName+1), "a"} {
		q, err := info.request(testRules(), words, [][]byte{[]byte(key)})
		if fits := key != "" && len(key) <= semaphore.MaxName; (err == nil) != fits {
			t.Errorf("key %.9q: got error %v, want one: %v", key, err, !fits)
		} else if fits && q.request != any(semaphore.Inspect{Key: key}) {
			t.Errorf("key %q: got %+v", key, q.request)
		}
	}
}

func TestDigits(t *testing.T) {
	for in, want := range map[string]uint64{
		"0": 0, "007": 7, "9223372036854775808": 1 << 63, "18446744073709551615": math.MaxUint64, strings.Repeat("0", 40) + "5": 5,
	} {
		if got, ok := digits([]byte(in)); !ok || got != want {
			t.Errorf("%s: got %d, %v; want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "-1", "+1", " 1", "1 ", "1e3", "0x1", "1_0", "/", ":", "18446744073709551616", "18446744073709551620", "99999999999999999999", "184467440737095516150"} {
		if got, ok := digits([]byte(in)); ok {
			t.Errorf("%q was read as %d", in, got)
		}
	}
}

func TestServerMadeHoldersDiffer(t *testing.T) {
	a, _ := parse("SEM.ACQUIRE", "k")
	b, _ := parse("SEM.ACQUIRE", "k")
	x, y := a.request.(semaphore.Acquire), b.request.(semaphore.Acquire)
	if x.Holder == y.Holder || !x.Made || len(x.Holder) < 22 {
		t.Errorf("got holders %q and %q, made %v", x.Holder, y.Holder, x.Made)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("SEM.ACQUIRE k HOLDER h WAIT 5 LEASE 7 CAPACITY 3 SLOTS")
	f.Add("SEM.CREATE k 5 LEASE 1 MAXLEASE 2 MAXHOLD 3 QUARANTINE 0 IDLE 5 MINTOKEN 7 IFABSENT")
	f.Add("SEM.RENEW k h PERSIST TOKEN 9")
	f.Add("SEM.SCAN 0 MATCH [a COUNT 99")
	f.Add("SEM.HOLDERS k CURSOR 1 COUNT 99")
	table, rules := newTable(), testRules()
	f.Fuzz(func(t *testing.T, line string) {
		words, ok := splitWords([]byte(line))
		if !ok || len(words) == 0 {
			return
		}
		cmd := table.find(words[0])
		if cmd == nil || cmd.parse == nil {
			return
		}
		q, err := cmd.request(rules, &arguments{}, words[1:])
		if err == nil && q.request == nil {
			t.Fatalf("neither a request nor an error")
		}
		if err != nil && (err.Code != semaphore.CodeInvalid || err.Message == "") {
			t.Fatalf("refused with %v", err)
		}
		if a, ok := q.request.(semaphore.Acquire); ok && err == nil {
			if a.Key == "" || a.Holder == "" || a.Permits < 1 || a.Wait < 0 || a.Wait > rules.maxWait || a.Lease > rules.maxLease || a.Lease < semaphore.Persist {
				t.Fatalf("accepted %+v", a)
			}
		}
	})
}
