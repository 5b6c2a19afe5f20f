package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

func three() *fake {
	return &fake{
		now: Look{At: time.Unix(100, 0), Semaphores: []Semaphore{
			semaphore("alpha", 1, 4, 0), semaphore("beta", 2, 2, 3), semaphore("gamma", 3, 4, 0),
		}},
		details: map[string]Detail{"beta": {
			Key: "beta",
			Holders: []remote.Holder{
				{Holder: "h1", Token: 7, Remaining: 10 * time.Second, Client: "one"},
				{Holder: "h2", Token: 8, Slot: 1, Remaining: remote.Forever, Client: "two"},
			},
			Waiters: []remote.Waiter{{Holder: "w1", Permits: 1, Waited: time.Second, Remaining: time.Minute, Client: "three"}},
		}},
	}
}

func TestSemaphoresAreSortedByWhatDeservesALook(t *testing.T) {
	s := show(t, three())
	for _, c := range []struct {
		keys []string
		want []string
	}{
		{nil, []string{"beta", "gamma", "alpha"}},
		{[]string{"r"}, []string{"alpha", "gamma", "beta"}},
		{[]string{"n"}, []string{"alpha", "beta", "gamma"}},
		{[]string{"w"}, []string{"beta", "alpha", "gamma"}},
		{[]string{"o"}, []string{"beta", "alpha", "gamma"}},
		{[]string{"u"}, []string{"beta", "gamma", "alpha"}},
		{[]string{"s", "s", "s", "s"}, []string{"alpha", "beta", "gamma"}},
	} {
		s.press(c.keys...)

		if got := names(s.shown()); strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%q: got %q, want %q", c.keys, got, c.want)
		}
	}
}

func TestSelectionStaysWithTheNameWhileRowsMove(t *testing.T) {
	f := three()
	s := show(t, f)
	s.press("down") // gamma, second by use

	f.now.Semaphores = append([]Semaphore{semaphore("new", 9, 9, 9)}, f.now.Semaphores...)
	s.refresh()
	s.press("enter")

	if s.open == nil || s.open.key != "gamma" {
		t.Errorf("opened %+v, want gamma", s.open)
	}
}

func TestFilterKeepsPartsOfNames(t *testing.T) {
	s := show(t, three())

	s.press("/", "M", "x")
	s.wants("filter: Mx_", "no semaphore with this in its name")
	s.press("backspace")
	s.wants("filter: M_", "gamma")
	s.press("enter")
	s.lacks("alpha")
	s.press("q") // a key again, not a letter
	s.press("esc")
	s.wants("beta", "gamma", "alpha")
	s.press("/")
	s.tell(tea.PasteMsg{Content: "alp"})
	s.lacks("gamma")
	s.press("esc")
	s.wants("gamma")
}

func TestHolderIsReleasedByItsTokenAndOnlyAfterAYes(t *testing.T) {
	f := three()
	s := show(t, f)
	s.press("enter", "down", "x")
	s.wants("Release what h2 holds of beta?", "[y/N]")
	s.press("enter")
	s.wants("nothing was done")
	if len(f.done) != 0 {
		t.Fatalf("done without a yes: %q", f.done)
	}

	s.press("x", "y")

	s.wants("released h2")
	if fmt.Sprint(f.done) != "[release beta h2 8]" {
		t.Errorf("got %q, want the grant with token 8 released", f.done)
	}
	f.over = true
	s.press("x", "Y")
	s.wants("it was over already")
	f.err = errAway
	s.press("x", "y")
	s.wants("not done: no server answers")
}

func TestWhatIsReleasedIsWhatTheQuestionNamed(t *testing.T) {
	f := three()
	s := show(t, f)
	s.press("enter", "x")
	s.wants("Release what h1 holds")

	f.details["beta"] = Detail{Key: "beta", Holders: []remote.Holder{{Holder: "h9", Token: 99}}}
	s.refresh()
	s.press("y")

	if fmt.Sprint(f.done) != "[release beta h1 7]" {
		t.Errorf("got %q, want h1 with its token", f.done)
	}
}

func TestWaiterIsTakenOutOfTheLine(t *testing.T) {
	f := three()
	s := show(t, f)

	s.press("enter", "tab", "x")
	s.wants("Make w1 leave the line of beta?")
	s.press("y")

	if fmt.Sprint(f.done) != "[cancel beta w1]" {
		t.Errorf("got %q, want w1 cancelled", f.done)
	}
}

func TestNothingIsAskedWhereNobodyIsSelected(t *testing.T) {
	f := three()
	f.details["beta"] = Detail{Key: "beta"}
	s := show(t, f)
	s.press("x") // in the overview
	s.press("enter", "x", "tab", "x")
	if s.question != nil {
		t.Errorf("got the question %q, want none", s.question.text)
	}
	s.wants("HOLDER (0)", "Nobody waits.")
}

func TestDetailOfAnotherSemaphoreIsNotShown(t *testing.T) {
	s := show(t, three())
	s.press("n", "enter") // alpha

	s.tell(detailNews{key: "beta", detail: three().details["beta"]})

	s.lacks("h1")
}

func TestDeletedSemaphoreIsCalledSo(t *testing.T) {
	f := three()
	s := show(t, f)
	s.press("enter")
	s.tell(detailNews{key: "beta", err: &remote.Refusal{Code: "NOSEM", Text: "NOSEM no such semaphore"}})

	s.wants("It has been deleted.")
	s.press("esc")
	s.wants("gamma")
}

func TestOldNewsAreShownWithTheirAge(t *testing.T) {
	f := three()
	s := show(t, f)
	f.err = errAway

	s.refresh()
	s.wants("as of", "no server answers", "beta")
	f.err = nil
	s.refresh()
	s.lacks("as of")

	fresh := show(t, &fake{err: errAway})
	fresh.wants("no server answers", "looking")
}

func TestPauseLooksNoMore(t *testing.T) {
	f := three()
	s := show(t, f)
	s.press("p")
	f.now.Semaphores = nil
	if _, next := s.Update(tickNews{}); next == nil {
		t.Fatal("a tick: got nothing, want the next tick")
	}
	s.wants("paused", "beta")
}

func TestNodesAndAddressesWithoutAnAnswerAreShown(t *testing.T) {
	f := three()
	f.now.Nodes = []Node{{"", "a:1", "leader"}, {"two", "b:1", "follower"}, {"three", "c:1", "unreachable"}}
	f.now.Away = []remote.Reach{{Addr: "c:7360", Err: errAway}}
	f.now.Cut = true
	s := show(t, f)

	s.wants("the first 3 semaphores", "● a:1 leader", "● two follower", "✗ three unreachable", "c:7360 does not answer")
}

func TestScreenIsNeverLargerThanTheTerminal(t *testing.T) {
	f := three()
	for i := range 500 {
		f.now.Semaphores = append(f.now.Semaphores, semaphore(fmt.Sprintf("a very long name of a semaphore 語 %d", i), 1, 3, 0))
		d := f.details["beta"]
		d.Holders = append(d.Holders, remote.Holder{Holder: fmt.Sprintf("holder-%d", i), Client: strings.Repeat("x", 200)})
		d.Waiters = append(d.Waiters, remote.Waiter{Holder: fmt.Sprintf("waiter-%d", i)})
		f.details["beta"] = d
	}
	s := show(t, f)
	for _, size := range [][2]int{{200, 60}, {100, 24}, {80, 24}, {40, 8}, {39, 7}, {1, 1}} {
		s.tell(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, keys := range [][]string{{"home"}, {"end"}, {"pgup"}, {"n", "home", "enter"}, {"end", "tab", "end"}, {"x"}, {"n", "esc"}, {"?"}, {"?"}} {
			s.press(keys...)
			lines := strings.Split(s.text(), "\n")
			if len(lines) > size[1] {
				t.Errorf("%v after %q: got %d lines", size, keys, len(lines))
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > size[0] {
					t.Errorf("%v after %q: got a line of %d: %q", size, keys, w, l)
				}
			}
		}
	}
}

func TestControlCharactersOfStrangersAreQuoted(t *testing.T) {
	f := three()
	f.now.Semaphores = []Semaphore{semaphore("evil\x1b[2J\n", 1, 1, 0)}
	f.details["evil\x1b[2J\n"] = Detail{Key: "evil\x1b[2J\n", Holders: []remote.Holder{{Holder: "h\a", Client: "\x1b]0;owned\a"}}}
	s := show(t, f)
	s.wants(`"evil\x1b[2J\n"`)
	s.press("enter")
	s.wants(`"h\a"`, `owned\a"`)
	s.press("x")
	s.wants(`Release what "h\a" holds`)
}

func TestKeysEndTheView(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"/", "ctrl+c"}, {"?", "ctrl+c"}, {"enter", "x", "ctrl+c"}} {
		s := show(t, three())
		var last tea.Cmd
		for _, key := range keys {
			if last = s.Model.press(key); last != nil && key != keys[len(keys)-1] {
				s.run(last)
			}
		}
		if last == nil {
			t.Fatalf("%q: got nothing, want the end", keys)
		}
		if _, ok := last().(tea.QuitMsg); !ok {
			t.Errorf("%q: got no end", keys)
		}
	}
}
