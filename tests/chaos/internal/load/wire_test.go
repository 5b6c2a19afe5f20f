package load

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/history"
	"github.com/semserver/semserver/tests/internal/resp"
)

func TestRepliesAreToldApart(t *testing.T) {
	acquire, release := history.Op{Kind: history.Acquire}, history.Op{Kind: history.Release}
	granted := history.Grant{Holder: "h", Token: 7, Slots: []int64{1, 2, 5}, Lease: 900 * time.Millisecond, Replayed: true}
	for name, c := range map[string]struct {
		op    history.Op
		reply any
		want  history.Result
	}{
		"grant": {
			acquire, []any{"h", int64(7), int64(1), int64(900), int64(1), []any{[]any{int64(1), int64(2)}, []any{int64(5), int64(5)}}},
			history.Result{Outcome: history.Done, Grant: granted},
		},
		"null":   {acquire, nil, history.Result{Outcome: history.Null}},
		"number": {release, int64(1), history.Result{Outcome: history.Done, Number: 1}},
		"line": {
			history.Op{Kind: history.Waiters}, []any{"0", []any{[]any{"a", int64(1), int64(2), int64(3), "c"}}},
			history.Result{Outcome: history.Done, Line: []string{"a"}},
		},
		"books": {
			history.Op{Kind: history.Count},
			[]any{"name", "k", "capacity", int64(5), "in_use", int64(2), "available", int64(3), "holders", int64(1), "waiters", int64(4)},
			history.Result{Outcome: history.Done, Books: history.Books{Capacity: 5, InUse: 2, Available: 3, Holders: 1, Waiters: 4}},
		},
		"certainly not applied": {acquire, resp.Error("CLUSTERDOWN x"), history.Result{Outcome: history.Refused, Code: "CLUSTERDOWN", Text: "CLUSTERDOWN x"}},
		"perhaps applied":       {acquire, resp.Error("UNCERTAIN holder h"), history.Result{Outcome: history.Unknown, Code: "UNCERTAIN", Text: "UNCERTAIN holder h"}},
		"perhaps still in line": {acquire, resp.Error("SHUTDOWN x"), history.Result{Outcome: history.Unknown, Code: "SHUTDOWN", Text: "SHUTDOWN x"}},
	} {
		if got := read(c.op, c.reply); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRepliesOfAnotherShapeAreUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		kind  history.Kind
		reply any
	}{
		"a number for a grant":  {history.Acquire, int64(1)},
		"a grant without slots": {history.Acquire, []any{"h", int64(7), int64(0), int64(900), int64(0), []any{}}},
		"null for a number":     {history.Release, nil},
		"a part of the line":    {history.Waiters, []any{"7", []any{}}},
		"books without figures": {history.Count, []any{"name", "k"}},
	} {
		if got := read(history.Op{Kind: c.kind}, c.reply); got.Code != "unreadable" || got.Outcome != history.Unknown {
			t.Errorf("%s: got %+v, want it to be unreadable", name, got)
		}
	}
}

func TestRequestsAreWordedAsTheServerReadsThem(t *testing.T) {
	for want, o := range map[string]history.Op{
		"[SEM.ACQUIRE k HOLDER h PERMITS 2 LEASE 1000 SLOTS WAIT 50 FRESH]": {Kind: history.Acquire, Holder: "h", Permits: 2, Lease: time.Second, Wait: 50 * time.Millisecond, Fresh: true},
		"[SEM.RENEW k h LEASE 1000 TOKEN 7]":                                {Kind: history.Renew, Holder: "h", Lease: time.Second, Token: 7},
		"[SEM.RELEASE k h]":                                                 {Kind: history.Release, Holder: "h"},
		"[SEM.CHECK k h 7]":                                                 {Kind: history.Check, Holder: "h", Token: 7},
		"[SEM.CANCEL k h]":                                                  {Kind: history.Cancel, Holder: "h"},
		"[SEM.WAITERS k COUNT 1000]":                                        {Kind: history.Waiters},
		"[SEM.INFO k]":                                                      {Kind: history.Count},
	} {
		o.Key = "k"
		if got := fmt.Sprint(words(o)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
