package remote

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

func TestHoldersAreReadPageByPage(t *testing.T) {
	row := func(holder string, remaining int) string {
		return fmt.Sprintf("*7\r\n$%d\r\n%s\r\n:5\r\n:0\r\n:1\r\n:%d\r\n:20\r\n$1\r\nc\r\n", len(holder), holder, remaining)
	}
	a := trial.Serve(t, func(words []string) string {
		if strings.Contains(strings.Join(words, " "), "CURSOR 0 ") {
			return "*2\r\n$2\r\n17\r\n*1\r\n" + row("first", 1500)
		}
		return "*2\r\n$1\r\n0\r\n*1\r\n" + row("second", -1)
	})
	s := open(t, trial.Patience, a.Addr())
	var got []Holder
	for h, err := range s.Holders(t.Context(), "k") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h)
	}
	want := []Holder{
		{"first", 5, 0, 1, 1500 * time.Millisecond, 20 * time.Millisecond, "c"},
		{"second", 5, 0, 1, Forever, 20 * time.Millisecond, "c"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSemaphoreThatIsDeletedMeanwhileIsLeftOut(t *testing.T) {
	a := trial.Serve(t, func(words []string) string {
		switch {
		case words[0] == "SEM.SCAN":
			return "*2\r\n$1\r\n0\r\n*2\r\n$4\r\ngone\r\n$4\r\nkept\r\n"
		case words[1] == "gone":
			return "-NOSEM no such semaphore\r\n"
		}
		return "*4\r\n$4\r\nname\r\n$4\r\nkept\r\n$8\r\ncapacity\r\n:3\r\n"
	})
	s := open(t, trial.Patience, a.Addr())
	n := 0
	for f, err := range s.Semaphores(t.Context(), "*") {
		if n++; err != nil || f.Text("name") != "kept" || f.Number("capacity") != 3 || f.Number("nosuch") != 0 {
			t.Errorf("got %v, %v, want kept with capacity 3", f, err)
		}
	}
	if n != 1 {
		t.Errorf("got %d semaphores, want 1", n)
	}
}

func TestRepliesThatAreNotUnderstoodAreErrors(t *testing.T) {
	for _, reply := range []string{
		"+OK\r\n", ":1\r\n", "*0\r\n", "*2\r\n:0\r\n*0\r\n", "*2\r\n$1\r\n0\r\n$1\r\nx\r\n", "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n",
		"*2\r\n$1\r\n0\r\n*1\r\n*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "$-1\r\n",
	} {
		a := trial.Serve(t, always(reply))
		s := open(t, trial.Patience, a.Addr())
		failed := false
		for _, err := range s.Waiters(t.Context(), "k") {
			failed = failed || err != nil
		}
		if !failed {
			t.Errorf("%q: got no error", reply)
		}
	}
	for _, reply := range []any{nil, int64(1), "OK", []any{"w"}, []any{"w", "t", int64(0), int64(0), int64(0)}} {
		if g, err := ReadGrant(reply); err == nil {
			t.Errorf("%v: got the grant %v, want an error", reply, g)
		}
	}
	if _, err := ReadFields([]any{"a"}); err == nil {
		t.Error("half a map: got no error")
	}
	if _, err := ReadNumbers([]any{int64(1)}, 3); err == nil {
		t.Error("one number of three: got no error")
	}
}

func TestListingEndsAtTheFirstError(t *testing.T) {
	a := trial.Serve(t, trial.InTurn("*2\r\n$1\r\n9\r\n*1\r\n$1\r\na\r\n", "-NOAUTH log in\r\n"))
	s := open(t, trial.Patience, a.Addr())
	var names []string
	var failure error
	for name, err := range s.Names(t.Context(), "*") {
		if failure = err; err == nil {
			names = append(names, name)
		}
	}
	var refused *Refusal
	if fmt.Sprint(names) != "[a]" || !errors.As(failure, &refused) {
		t.Errorf("got %v, %v, want a and a refusal", names, failure)
	}
}
