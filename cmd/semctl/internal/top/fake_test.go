package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("no server answers")

// fake is a source that a test fills.
type fake struct {
	now     Look
	details map[string]Detail
	err     error
	done    []string // what was released or cancelled
	over    bool     // there is nothing to release any more
}

func (f *fake) look(context.Context) (Look, error) { return f.now, f.err }

func (f *fake) detail(_ context.Context, key string) (Detail, error) { return f.details[key], f.err }

func (f *fake) release(_ context.Context, key string, h remote.Holder) (bool, error) {
	f.done = append(f.done, fmt.Sprintf("release %s %s %d", key, h.Holder, h.Token))
	return !f.over, f.err
}

func (f *fake) cancel(_ context.Context, key string, w remote.Waiter) (bool, error) {
	f.done = append(f.done, "cancel "+key+" "+w.Holder)
	return !f.over, f.err
}

// semaphore is one with these figures.
func semaphore(name string, inUse, capacity, waiters int64) Semaphore {
	return seen(remote.Fields{
		{Name: "name", Value: name}, {Name: "in_use", Value: inUse}, {Name: "capacity", Value: capacity}, {Name: "waiters", Value: waiters},
		{Name: "oldest_wait_ms", Value: 1000 * waiters}, {Name: "lease", Value: int64(-1)}, {Name: "maxlease", Value: int64(-1)},
		{Name: "maxhold", Value: int64(-1)}, {Name: "quarantine", Value: int64(-1)}, {Name: "idle", Value: int64(60000)},
	})
}

// screen is a view under test.
type screen struct {
	*Model
	t *testing.T
}

// show opens a view of what a source has.
func show(t *testing.T, f *fake) *screen {
	t.Helper()
	s := &screen{&Model{ctx: t.Context(), source: f, interval: time.Hour, title: "a:1"}, t}
	s.tell(tea.WindowSizeMsg{Width: 100, Height: 24})
	s.refresh()
	return s
}

// tell gives the model news, and runs what it asks for but the clock.
func (s *screen) tell(msg tea.Msg) {
	_, next := s.Update(msg)
	s.run(next)
}

func (s *screen) run(next tea.Cmd) {
	if next == nil {
		return
	}
	switch msg := next().(type) {
	case tea.BatchMsg:
		for _, one := range msg {
			s.run(one)
		}
	case lookNews, failedNews:
		_, _ = s.Update(msg) // what it asks for is the next tick
	default:
		s.tell(msg)
	}
}

// refresh looks again.
func (s *screen) refresh() { s.run(s.ask()) }

// press presses keys, and runs what they ask for.
func (s *screen) press(keys ...string) {
	for _, key := range keys {
		s.run(s.Model.press(key))
	}
}

// text is what is on the screen, without colours.
func (s *screen) text() string { return ansi.Strip(s.View().Content) }

// wants checks that the screen shows these texts, in this order.
func (s *screen) wants(texts ...string) {
	s.t.Helper()
	rest := s.text()
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			s.t.Fatalf("got this screen, want %q on it, in this order:\n%s", texts, s.text())
		}
		rest = after
	}
}

// lacks checks that the screen does not show a text.
func (s *screen) lacks(text string) {
	s.t.Helper()
	if strings.Contains(s.text(), text) {
		s.t.Fatalf("got this screen, want no %q on it:\n%s", text, s.text())
	}
}
