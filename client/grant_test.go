package client

import (
	"reflect"
	"testing"
	"time"
)

func TestGrantIsRead(t *testing.T) {
	got, err := readGrant([]any{"h", int64(9), int64(2), int64(1500), int64(1), []any{[]any{int64(2), int64(3)}, []any{int64(7), int64(7)}}}, time.Second)
	want := grant{token: 9, slots: []Slots{{First: 2, Last: 3}, {First: 7, Last: 7}}, lease: lease{time.Second, 1500 * time.Millisecond}, replayed: true}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	got, err = readGrant([]any{"h", int64(9), int64(-1), int64(-1), int64(0)}, time.Second)
	if err != nil || !got.lease.forever() || got.slots != nil || got.replayed {
		t.Errorf("got %+v and %v, want no end and no slots", got, err)
	}
}

func TestWhatIsNoGrantIsRefused(t *testing.T) {
	for _, reply := range []any{
		"OK", int64(1), []any{}, []any{"h", int64(1), int64(1), int64(1)}, []any{"h", "1", int64(1), int64(1), int64(1)},
		[]any{"h", int64(1), int64(1), int64(1), int64(0), "x"}, []any{"h", int64(1), int64(1), int64(1), int64(0), []any{[]any{int64(1)}}},
	} {
		if g, err := readGrant(reply, 0); err == nil {
			t.Errorf("%v: got %+v, want an error", reply, g)
		}
	}
	if _, err := readRenewal("1"); err == nil {
		t.Error("a renewal of text: got no error")
	}
}
