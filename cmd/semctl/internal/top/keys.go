package top

import (
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// page is how many rows the page keys move, at the least.
const page = 10

// press does what a key is for. Ctrl-C ends the view whatever it shows.
func (m *Model) press(key string) tea.Cmd {
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case m.question != nil:
		return m.answer(key)
	case m.typing:
		m.typeFilter(key)
		return nil
	case m.help:
		m.help = false
		return nil
	}
	m.note = ""
	if distance, moves := m.distance(key); moves {
		m.move(distance)
		return nil
	}
	switch key {
	case "q":
		return tea.Quit
	case "?", "h":
		m.help = true
	case "space", "p":
		m.paused = !m.paused
	case "esc", "backspace", "left":
		m.back()
	default:
		if m.open != nil {
			return m.pressInDetail(key)
		}
		return m.pressInOverview(key)
	}
	return nil
}

// answer takes the answer to a question: y, or anything else for no.
func (m *Model) answer(key string) tea.Cmd {
	q := m.question
	m.question = nil
	if key == "y" || key == "Y" {
		return q.act
	}
	m.note = "nothing was done"
	return nil
}

// back closes what was opened last: a semaphore, or the filter.
func (m *Model) back() {
	if m.open != nil {
		m.open = nil
		return
	}
	m.filter = ""
}

func (m *Model) pressInOverview(key string) tea.Cmd {
	switch key {
	case "/":
		m.typing, m.filter = true, ""
	case "enter", "right":
		return m.openSelected()
	case "r":
		m.reversed = !m.reversed
	case "s", "tab":
		m.sort((m.order + 1) % orders)
	default:
		for o := range orders {
			if key == o.key() {
				m.sort(o)
			}
		}
	}
	return nil
}

func (m *Model) sort(o order) { m.order, m.reversed = o, false }

func (m *Model) openSelected() tea.Cmd {
	shown := m.shown()
	m.cursor.settle(names(shown))
	if len(shown) == 0 {
		return nil
	}
	m.open = &opened{key: m.cursor.id}
	return m.askDetail()
}

func (m *Model) pressInDetail(key string) tea.Cmd {
	switch key {
	case "tab":
		m.open.inWaiters = !m.open.inWaiters
	case "x", "delete":
		m.askRelease()
	}
	return nil
}

// distance is how far a key moves the selection.
func (m *Model) distance(key string) (distance int, moves bool) {
	far := max(page, m.height/2)
	switch key {
	case "up", "k":
		return -1, true
	case "down", "j":
		return 1, true
	case "pgup", "ctrl+u":
		return -far, true
	case "pgdown", "ctrl+d":
		return far, true
	case "home":
		return -1 << 30, true
	case "end":
		return 1 << 30, true
	}
	return 0, false
}

func (m *Model) move(distance int) {
	switch {
	case m.open == nil:
		m.cursor.move(names(m.shown()), distance)
	case m.open.inWaiters:
		m.open.waiters.move(m.open.waiterIDs(), distance)
	default:
		m.open.holders.move(m.open.holderIDs(), distance)
	}
}

// typeFilter edits the filter.
func (m *Model) typeFilter(key string) {
	switch {
	case key == "enter":
		m.typing = false
	case key == "esc":
		m.typing, m.filter = false, ""
	case key == "backspace":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	case key == "space":
		m.filter += " "
	case utf8.RuneCountInString(key) == 1 && unicode.IsPrint([]rune(key)[0]):
		m.filter += key
	}
}
