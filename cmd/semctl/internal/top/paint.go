package top

import (
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/semserver/semserver/cmd/semctl/internal/plain"
)

func visible(text string) string  { return plain.Text(text) }
func span(d time.Duration) string { return plain.Span(d) }
func number(n int64) string       { return strconv.FormatInt(n, 10) }
func strong(text string) string   { return lipgloss.NewStyle().Bold(true).Render(text) }
func dim(text string) string      { return lipgloss.NewStyle().Faint(true).Render(text) }
func good(text string) string     { return colour("2", text) }
func bad(text string) string      { return colour("1", text) }
func colour(code, text string) string {
	return lipgloss.NewStyle().Foreground(lipgloss.Color(code)).Render(text)
}

// warn colours a text if there is something to look at.
func warn(text string, on bool) string {
	if on {
		return colour("3", text)
	}
	return text
}

// barWidth is the width of a bar.
const barWidth = 12

// bar shows a share: green while there is room, yellow when all is taken, red beyond.
func bar(share float64) string {
	full := min(barWidth, int(share*barWidth+0.5))
	if share > 0 {
		full = max(1, full)
	}
	code := "2"
	switch {
	case share > 1:
		code = "1"
	case share == 1:
		code = "3"
	}
	return colour(code, strings.Repeat("█", full)) + dim(strings.Repeat("░", barWidth-full))
}

// column is a column of a grid. Without a width it takes what the others leave, by its share; one
// without a share has two.
type column struct {
	title string
	width int
	share int
	right bool
}

// grid aligns cells in columns, two blanks apart.
type grid struct {
	columns []column
	width   int
}

const (
	gap          = 2
	defaultShare = 2
	minName      = 16
)

func newGrid(columns []column, width int) grid {
	left, shares := width-gap*(len(columns)-1), 0
	for i := range columns {
		c := &columns[i]
		if left -= c.width; c.width == 0 {
			if c.share == 0 {
				c.share = defaultShare
			}
			shares += c.share
		}
	}
	for i := range columns {
		if c := &columns[i]; c.share > 0 {
			c.width = max(minName, left*c.share/shares)
		}
	}
	return grid{columns, width}
}

func (g grid) head() string {
	cells := make([]string, len(g.columns))
	for i, c := range g.columns {
		cells[i] = c.title
	}
	return strong(g.line(cells))
}

// row draws one row; the selected one is turned over, without colours of its own.
func (g grid) row(selected bool, cells ...string) string {
	line := g.line(cells)
	if selected {
		return lipgloss.NewStyle().Reverse(true).Render(ansi.Strip(line))
	}
	return line
}

func (g grid) line(cells []string) string {
	padded := make([]string, len(cells))
	for i, c := range g.columns {
		padded[i] = fit(cells[i], c)
	}
	return ansi.Truncate(strings.Join(padded, strings.Repeat(" ", gap)), g.width, "")
}

// fit makes a cell as wide as its column.
func fit(cell string, c column) string {
	cell = ansi.Truncate(cell, c.width, "…")
	blank := strings.Repeat(" ", c.width-ansi.StringWidth(cell))
	if c.right {
		return blank + cell
	}
	return cell + blank
}
