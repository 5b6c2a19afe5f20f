package guard

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
)

func TestPlaceIsToldAgainOnlyWhenItHasChanged(t *testing.T) {
	var out strings.Builder
	r := &Report{Out: &out}
	for _, place := range []int{3, 3, 2, 2, 1} {
		r.line(line{name: "loader", place: place})
	}
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("got %q, want three lines", out.String())
	}
}

func TestTerminalLineIsCutToItsWidthAndTakenAway(t *testing.T) {
	var out strings.Builder
	r := &Report{Out: &out, Width: func() int { return 20 }}
	r.line(line{name: "loader", place: 1})
	r.clear()
	r.clear()
	if got, want := out.String(), "\r\x1b[Ksemctl: waiting fo…\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLossIsToldOnceAndWithoutControlCharacters(t *testing.T) {
	var out strings.Builder
	r := &Report{Out: &out, Quiet: true}
	e := &client.LostError{Name: "a\x1b", Reason: client.ErrNotHeld}
	r.lost(e)
	r.lost(e)
	if got, want := out.String(), "semctl: the permit of \"a\\x1b\" is lost: "+client.ErrNotHeld.Error()+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// stuck never takes anything.
type stuck struct{ until chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.until
	return len(p), nil
}

func TestStreamThatIsStuckHoldsNobodyUp(t *testing.T) {
	s := stuck{make(chan struct{})}
	o := NewOutlet(s)
	began := time.Now()
	for range 10 * outletQueue {
		_, _ = io.WriteString(o, "line\n")
	}
	if took := time.Since(began); took > outletFlush {
		t.Errorf("writing took %v, want it not to wait", took)
	}
	close(s.until)
	o.Close()
	o.Close()
	_, _ = io.WriteString(o, "late\n")
}

func TestEverythingIsWrittenBeforeTheEnd(t *testing.T) {
	var out strings.Builder
	o := NewOutlet(&out)
	_, _ = io.WriteString(o, "one\n")
	_, _ = io.WriteString(o, "two\n")
	o.Close()
	if got := out.String(); got != "one\ntwo\n" {
		t.Errorf("got %q, want both lines", got)
	}
}
