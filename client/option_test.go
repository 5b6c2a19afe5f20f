package client

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestOptionsMakeTheCommand(t *testing.T) {
	for want, options := range map[string][]Option{
		"":                            nil,
		"PERMITS 3 SLOTS":             {Permits(3)},
		"LEASE 30000 WAIT 60000":      {Wait(time.Minute), Lease(30 * time.Second)},
		"WAIT 1":                      {Wait(time.Microsecond)},
		"CAPACITY 0":                  {Capacity(0)},
		"PERSIST LABEL a b FRESH":     {Label("a b"), Persist(), Fresh()},
		"CAPACITY 8":                  {Capacity(9), Capacity(8)},
		"LEASE 1500 CAPACITY 2 FRESH": {Lease(1500*time.Millisecond + time.Microsecond), Capacity(2), Fresh()},
	} {
		r, err := newRequest("loader", append(options, Holder("h")))
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		got := strings.TrimSuffix(fmt.Sprintln(r.command(r.wait)...), "\n")
		if want = strings.TrimSpace("SEM.ACQUIRE loader HOLDER h " + want); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOptionsThatMakeNoSenseAreNamed(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for word, option := range map[string]Option{
		"holder":      Holder(""),
		"bytes":       Holder(long),
		"label":       Label(long),
		"permits":     Permits(0),
		"permits: -1": Permits(-1),
		"capacity":    Capacity(-1),
		"wait":        Wait(-time.Second),
		"lease":       Lease(0),
		"lease: 199":  Lease(199 * time.Millisecond),
		"unavailable": WhenUnavailable(7),
	} {
		if _, err := newRequest("loader", []Option{option}); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got error %v, want one about %q", err, word)
		}
	}
	for _, name := range []string{"", long} {
		if _, err := newRequest(name, nil); err == nil || !strings.Contains(err.Error(), "name") {
			t.Errorf("a name of %d bytes: got error %v, want one about it", len(name), err)
		}
	}
	if _, err := newRequest("loader", []Option{Persist(), Lease(time.Second)}); err == nil {
		t.Error("a lease of a permit that never expires: got no error")
	}
}

func TestEachAcquireHasAHolderOfItsOwn(t *testing.T) {
	a, _ := newRequest("loader", nil)
	b, _ := newRequest("loader", nil)
	if a.holder == b.holder || len(a.holder) < 16 {
		t.Errorf("got holders %q and %q, want two that nobody guesses", a.holder, b.holder)
	}
}

func TestPrefixMakesAHolderRecognisable(t *testing.T) {
	r, err := newRequest("loader", []Option{HolderPrefix("pod-7-")})
	if err != nil || !strings.HasPrefix(r.holder, "pod-7-") || len(r.holder) < 20 || r.named {
		t.Errorf("got holder %q and %v, want an id of its own that begins with pod-7-", r.holder, err)
	}
}

func TestConfigThatMakesNoSenseIsRefused(t *testing.T) {
	for _, config := range []Config{{Addrs: []string{"a:1", ""}}, {Connections: -1}} {
		if _, err := New(config); err == nil {
			t.Errorf("%+v: got no error", config)
		}
	}
}
