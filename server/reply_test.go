package server

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func TestReplies(t *testing.T) {
	acquire, create := semaphore.Acquire{Key: "k"}, semaphore.Create{Key: "k"}
	for _, c := range []struct {
		name  string
		call  call
		reply semaphore.Reply
		want  string
	}{
		{"done", call{request: create}, semaphore.Reply{}, "+OK\r\n"},
		{"no permit", call{request: acquire}, semaphore.Reply{}, "*-1\r\n"},
		{"a lease of less than 1 ms is not over", call{request: acquire},
			semaphore.Reply{Value: &semaphore.Grant{Holder: "h", Token: 1 << 52, Lease: time.Microsecond, Slots: []semaphore.Range{{First: 3, Last: 3}}}},
			"*5\r\n$1\r\nh\r\n:4503599627370496\r\n:3\r\n:1\r\n:0\r\n"},
		{"a lease is rounded down", call{request: acquire},
			semaphore.Reply{Value: &semaphore.Grant{Holder: "h", Token: 1, Lease: 2999 * time.Microsecond}},
			"*5\r\n$1\r\nh\r\n:1\r\n:-1\r\n:2\r\n:0\r\n"},
		{"slots are ranges", call{request: acquire, slots: true},
			semaphore.Reply{Value: &semaphore.Grant{Holder: "h", Token: 1, Lease: semaphore.Persist, Slots: []semaphore.Range{{First: 1, Last: 1}, {First: 3, Last: 4}}}},
			"*6\r\n$1\r\nh\r\n:1\r\n:1\r\n:-1\r\n:0\r\n*2\r\n*2\r\n:1\r\n:1\r\n*2\r\n:3\r\n:4\r\n"},
		{"usage", call{request: create}, semaphore.Reply{Value: semaphore.Usage{Capacity: 2, InUse: 5}}, "*3\r\n:2\r\n:5\r\n:0\r\n"},
		{"a refusal", call{request: acquire}, semaphore.Reply{Err: semaphore.ErrQueueFull}, "-QUEUEFULL the line is as long as --max-waiters allows\r\n"},
		{"a wrapped refusal", call{request: acquire}, semaphore.Reply{Err: fmt.Errorf("step: %w", semaphore.ErrDown)}, "-CLUSTERDOWN no leader can be reached; the request was not applied\r\n"},
		{"an error without a code says nothing of the outcome", call{request: acquire}, semaphore.Reply{Err: errors.New("boom")}, "-UNCERTAIN internal error: boom\r\n"},
		{"an error is one line", call{request: acquire}, semaphore.Reply{Err: semaphore.Uncertain("a\r\n+OK")},
			"-UNCERTAIN holder a  +OK the outcome is not known; repeat the request with this HOLDER, or SEM.CANCEL and then SEM.RELEASE it\r\n"},
		{"cursors are strings", call{request: create}, semaphore.Reply{Value: &semaphore.KeyPage{Next: 1<<64 - 1, Keys: []string{"\x00\r\n"}}},
			"*2\r\n$20\r\n18446744073709551615\r\n*1\r\n$3\r\n\x00\r\n\r\n"},
	} {
		o := &output{pool: &bufferPool{}, proto: 2}
		o.answer(&c.call, c.reply)
		if string(o.buf) != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, o.buf, c.want)
		}
	}
}

func TestWithdrawnGrantsBecomeNull(t *testing.T) {
	o := &output{pool: &bufferPool{}, proto: 2}
	a, b, again := &semaphore.Grant{Holder: "a"}, &semaphore.Grant{Holder: "b"}, &semaphore.Grant{Holder: "c", Replayed: true}
	q := &call{request: semaphore.Acquire{Key: "k"}}
	o.grant(q, a)
	o.ok()
	o.proto = 3
	o.grant(q, again)
	kept := string(o.buf[o.grants[0].to+len("+OK\r\n"):])
	o.grant(q, b)
	var back []*semaphore.Grant
	o.withdraw(func(_ string, g *semaphore.Grant) { back = append(back, g) })
	if got, want := string(o.buf), "*-1\r\n+OK\r\n"+kept+"_\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(back) != 2 || back[0] != a || back[1] != b || len(o.grants) != 0 {
		t.Errorf("given back %v, want a and b; %d left", back, len(o.grants))
	}
}

func TestGrantsBehindTheLastByteWrittenAreGivenBack(t *testing.T) {
	q := &call{request: semaphore.Acquire{Key: "k"}}
	one := &output{pool: &bufferPool{}, proto: 2}
	one.grant(q, &semaphore.Grant{Holder: "a"})
	size := one.len()
	for written, want := range map[int]int{0: 3, 1: 2, size: 2, size + 1: 1, 2 * size: 1, 3*size - 1: 0, 3 * size: 0} {
		o := &output{pool: &bufferPool{}, proto: 2}
		for range 3 {
			o.grant(q, &semaphore.Grant{Holder: "a"})
		}
		back := 0
		o.unwritten(written, func(string, *semaphore.Grant) { back++ })
		if back != want {
			t.Errorf("%d of %d bytes written: %d given back, want %d", written, 3*size, back, want)
		}
	}
}
