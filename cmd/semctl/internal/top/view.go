package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// minWidth and minHeight are the smallest screen that can be drawn on.
const (
	minWidth  = 40
	minHeight = 8
)

// View implements tea.Model.
func (m *Model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = "semctl top"
	return v
}

// screen is the whole picture, exactly as high as the terminal.
func (m *Model) screen() string {
	switch {
	case m.width == 0:
		return "" // the size is not known yet
	case m.width < minWidth || m.height < minHeight:
		return ansi.Truncate("the window is too small", m.width, "")
	case m.help:
		return m.compose(strings.Split(helpPage, "\n"), dim("any key: back"))
	}
	lines := m.header()
	body := m.height - len(lines) - 1
	if m.open != nil {
		lines = append(lines, m.detailView(body)...)
	} else {
		lines = append(lines, m.overview(body)...)
	}
	return m.compose(lines, m.footer())
}

// compose puts a footer on the last line, and cuts what does not fit.
func (m *Model) compose(lines []string, footer string) string {
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:m.height-1], footer)
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "…")
	}
	return strings.Join(lines, "\n")
}

// header is what stands above both views.
func (m *Model) header() []string {
	held, waiting := m.look.sums()
	count := number(int64(len(m.look.Semaphores))) + " semaphores"
	switch {
	case m.look.Cut:
		count = "the first " + count
	case len(m.look.Semaphores) == 1:
		count = "1 semaphore"
	}
	title := strong("semctl top") + "  " + visible(m.title)
	if !m.look.At.IsZero() {
		title += fmt.Sprintf("  %s, %d permits held, %s", count, held, warn(fmt.Sprintf("%d waiting", waiting), waiting > 0))
	}
	if m.paused {
		title += "  " + colour("3", "paused")
	}
	return []string{title, m.nodes(), m.banner()}
}

// nodes says who is in the cluster, and which of the addresses do not answer.
func (m *Model) nodes() string {
	var parts []string
	for _, n := range m.look.Nodes {
		name := n.Label
		if name == "" {
			name = n.Address
		}
		parts = append(parts, paintRole(n.Role, visible(name)+" "+visible(n.Role)))
	}
	for _, r := range m.look.Away {
		parts = append(parts, bad(visible(r.Addr)+" does not answer"))
	}
	return strings.Join(parts, "  ")
}

func paintRole(role, text string) string {
	switch role {
	case "leader":
		return good("● " + text)
	case "unreachable", "down", "failed":
		return bad("✗ " + text)
	}
	return "● " + text
}

// banner is the line for what is not as usual.
func (m *Model) banner() string {
	switch {
	case m.failure != nil && m.look.At.IsZero():
		return bad(visible(m.failure.Error()))
	case m.failure != nil:
		return bad("as of " + m.look.At.Format(time.TimeOnly) + ": " + visible(m.failure.Error()))
	case m.typing:
		return "filter: " + visible(m.filter+"_")
	case m.filter != "" && m.open == nil:
		return "filter: " + visible(m.filter) + dim("  (esc: all)")
	}
	return ""
}

func (m *Model) footer() string {
	switch {
	case m.question != nil:
		return colour("3", m.question.text) + strong(" [y/N]")
	case m.note != "":
		return m.note
	case m.typing:
		return dim("enter: keep  esc: all")
	case m.open != nil:
		return dim("q: quit  ?: help  ↑↓ select  esc: back  x: release  tab: holders, line")
	}
	return dim(fmt.Sprintf("q: quit  ?: help  ↑↓ select  enter: open  /: filter  s: sort (%s)  r: reverse  p: pause", m.order.title()))
}

const helpPage = `Keys

  ↑ ↓ k j  PgUp PgDn  Home End   select a row
  enter →                        open the selected semaphore
  esc ←                          back; in the overview: take the filter away
  /                              filter by a part of the name
  u w o g n                      sort by use, waiters, oldest wait, grants, name
  s                              the next of these orders
  r                              the other way round
  tab                            in a semaphore: between its holders and its line
  x                              release the selected holder, or take it out of the line
  p space                        pause
  q                              quit

Columns

  USE       permits held of the capacity; +3q: three more in quarantine
  OLDEST    how long the head of the line has waited
  WAIT      mean of the waits that ended since the last look
  GRANTS/S  since the last look
  EXPIRED   leases that ended while held, since the semaphore was created`
