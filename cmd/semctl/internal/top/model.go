package top

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// Model is what is shown.
type Model struct {
	ctx           context.Context // ends with the program: what is still asked then is given up
	source        source
	interval      time.Duration
	title         string
	width, height int

	look    Look
	failure error // of the last look; what is shown is older
	paused  bool

	order    order
	reversed bool
	filter   string
	typing   bool // the filter is being typed
	cursor   cursor

	open     *opened   // the semaphore whose holders are shown; nil: all semaphores
	question *question // waits for y or n
	note     string    // what came of the last action
	help     bool
}

// opened is the semaphore that is shown by itself.
type opened struct {
	key       string
	detail    Detail
	known     bool // the detail has come
	gone      error
	holders   cursor
	waiters   cursor
	inWaiters bool // the keys move in the line, not among the holders
}

// question is what is done after a y.
type question struct {
	text string
	act  tea.Cmd
}

// News.
type (
	tickNews   struct{}
	lookNews   struct{ look Look }
	failedNews struct{ err error }
	detailNews struct {
		key    string
		detail Detail
		err    error
	}
	doneNews struct{ note string }
)

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return m.ask() }

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	case tea.PasteMsg:
		if m.typing {
			m.filter += msg.Content
		}
	case tickNews:
		if m.paused {
			return m, m.tick()
		}
		return m, m.ask()
	case lookNews:
		msg.look.compare(m.look)
		m.look, m.failure = msg.look, nil
		return m, m.tick()
	case failedNews:
		m.failure = msg.err
		return m, m.tick()
	case detailNews:
		m.learn(msg)
	case doneNews:
		m.note = msg.note
		return m, m.askDetail()
	}
	return m, nil
}

// learn takes the detail of a semaphore, unless another one has been opened meanwhile.
func (m *Model) learn(news detailNews) {
	if m.open == nil || m.open.key != news.key {
		return
	}
	m.open.gone = news.err
	if news.err == nil {
		m.open.detail, m.open.known = news.detail, true
	}
}

func (m *Model) tick() tea.Cmd {
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return tickNews{} })
}

// ask looks at everything that is shown.
func (m *Model) ask() tea.Cmd {
	look := func() tea.Msg {
		l, err := m.source.look(m.ctx)
		if err != nil {
			return failedNews{err}
		}
		return lookNews{l}
	}
	return tea.Batch(look, m.askDetail())
}

func (m *Model) askDetail() tea.Cmd {
	if m.open == nil {
		return nil
	}
	key := m.open.key
	return func() tea.Msg {
		d, err := m.source.detail(m.ctx, key)
		return detailNews{key, d, err}
	}
}

// askRelease asks whether the selected holder shall lose its permits, or the selected waiter its
// place.
func (m *Model) askRelease() {
	o := m.open
	if o == nil || !o.known {
		return
	}
	if o.inWaiters {
		o.waiters.settle(o.waiterIDs())
		if len(o.detail.Waiters) == 0 {
			return
		}
		w := o.detail.Waiters[o.waiters.index]
		m.question = &question{
			fmt.Sprintf("Make %s leave the line of %s?", visible(w.Holder), visible(o.key)),
			m.act(func() (bool, error) { return m.source.cancel(m.ctx, o.key, w) }, visible(w.Holder)+" has left the line"),
		}
		return
	}
	o.holders.settle(o.holderIDs())
	if len(o.detail.Holders) == 0 {
		return
	}
	h := o.detail.Holders[o.holders.index]
	m.question = &question{
		fmt.Sprintf("Release what %s holds of %s? It is not told, and may go on working.", visible(h.Holder), visible(o.key)),
		m.act(func() (bool, error) { return m.source.release(m.ctx, o.key, h) }, "released "+visible(h.Holder)),
	}
}

// act is a command that does something and notes what came of it.
func (m *Model) act(do func() (bool, error), success string) tea.Cmd {
	return func() tea.Msg {
		done, err := do()
		switch {
		case err != nil:
			return doneNews{"not done: " + visible(err.Error())}
		case !done:
			return doneNews{"nothing to do: it was over already"}
		}
		return doneNews{success}
	}
}

func (o *opened) holderIDs() []string {
	return idsOf(o.detail.Holders, func(h remote.Holder) string { return h.Holder })
}

func (o *opened) waiterIDs() []string {
	return idsOf(o.detail.Waiters, func(w remote.Waiter) string { return w.Holder })
}

func idsOf[Row any](rows []Row, id func(Row) string) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = id(r)
	}
	return ids
}
